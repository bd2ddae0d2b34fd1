"""A course made by our command and worked on by nbgrader's own classes, for the tests."""

import logging
import shutil

from walls import SANDBOXED

from grading.demo import samples
from grading.proof.attacks.attack import ARGUMENTS
from grading.week import course
from grading.week.databases import open_gradebook

NOTEBOOK = "week06.ipynb"


class Course:
    """A course; its exam is a handful of tests, so that it takes seconds, unless all are asked for."""

    def __init__(self, folder, tests=tuple(ARGUMENTS)):
        self.folder = folder
        if not folder.exists():
            course.set_up(folder)
            with (folder / course.CONFIG).open("a", encoding="utf-8") as config:
                config.write(f"c.WeekAutograde.tests = {list(tests)!r}\nc.WeekAutograde.sandboxed = {SANDBOXED}\n")

    def app(self):
        """nbgrader as its commands set it up."""
        from nbgrader.apps import NbGrader

        app = NbGrader()
        app.initialize([], root=str(self.folder))
        app.start()
        app.coursedir.assignment_id = "week06"
        return app

    def api(self):
        """What formgrader's buttons call."""
        from nbgrader.apps.api import NbGraderAPI

        app = self.app()
        return NbGraderAPI(app.coursedir, parent=app)

    def autograde(self, student="*", force=False):
        """`nbgrader autograde week06`: what it logged, and whether it ended well."""
        from nbgrader.apps import autogradeapp
        from nbgrader.converters import NbGraderException

        app = self.app()
        app.coursedir.student_id = student
        lines = _Lines()
        app.log.addHandler(lines)
        try:
            autogradeapp.Autograde(coursedir=app.coursedir, parent=app, force=force).start()
        except NbGraderException:
            return lines.said, False
        finally:
            app.log.removeHandler(lines)
        return lines.said, True

    def hand_in(self, student, files, notebook=None):
        """A submission of code {name: text}, and the bytes of a notebook; None takes the released one."""
        folder = self.folder / "submitted" / student / "week06"
        (folder / "exercises_en").mkdir(parents=True)
        for name, text in files.items():
            (folder / "exercises_en" / name).write_text(text, encoding="utf-8")
        if notebook is None:
            shutil.copy(self.folder / "release" / "week06" / NOTEBOOK, folder)
        elif notebook:
            (folder / NOTEBOOK).write_bytes(notebook)
        return folder

    def autograded(self, student):
        return self.folder / "autograded" / student / "week06" / NOTEBOOK

    def gradebook(self):
        return open_gradebook(f"sqlite:///{self.folder / 'gradebook.db'}")

    def scores(self):
        """{student: {cell: score}} of the gradebook."""
        with self.gradebook() as book:
            return {
                submission.student.id: {
                    grade.name: grade.score for notebook in submission.notebooks for grade in notebook.grades
                }
                for submission in book.assignment_submissions("week06")
            }


class _Lines(logging.Handler):
    def __init__(self):
        super().__init__()
        self.said = []

    def emit(self, record):
        self.said.append(record.getMessage())


def sample(name):
    """The files of a sample submission: {name: text}."""
    return samples.files(name)
