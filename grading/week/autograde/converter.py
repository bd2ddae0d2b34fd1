"""nbgrader's Autograde for the week: submissions are made sound, graded by the two-zone grader, then converted."""

import hashlib
import json
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbgrader.api import Gradebook
from nbgrader.converters import Autograde, NbGraderException
from nbgrader.utils import rmtree
from traitlets import Bool, Integer, List, Unicode

from grading import preflight
from grading.authoring.cells import is_answer, is_check, nbgrader_of
from grading.grader.inside.text import clean
from grading.grader.states import GRADER_ERROR
from grading.grader.untrusted.files import keep_out
from grading.week.autograde.grader import NothingGraded, ask
from grading.week.autograde.preprocessors import STAMP
from grading.week.autograde.staging import stage, students
from grading.week.feedback_key import KEY
from grading.week.late_policy import renew
from grading.week.times import TIMESTAMP
from machinery import parts

RESULTS = "results"  # of the course: the grader's results, a folder for each assignment


@dataclass(frozen=True)
class Graded:
    """What the preprocessors need to know about one submission."""

    result: dict
    notes: tuple
    unsure: frozenset  # answers that look untouched and may not be
    rubrics: dict  # answer's grade id -> text
    bonus_before: dict  # depth part -> the extra credit that the last grading gave
    stamp: str  # of all that this grading is made from
    unchanged: bool  # since the last grading


class WeekAutograde(Autograde):
    """Autograde, but no student code runs here, and what was handed in may be in any state."""

    secret_file = Unicode("", help="The file that holds the course's secret").tag(config=True)
    jobs = Integer(2, min=1, help="Submissions graded side by side").tag(config=True)
    sandboxed = Bool(True, help="False grades without bubblewrap").tag(config=True)
    tests = List(Unicode(), ["tests"], help="pytest's arguments that name the tests").tag(config=True)

    def start(self):
        for sentence in preflight.autograde(self.coursedir.root, self.sandboxed):
            self._refuse(f"nothing is graded: {sentence.rstrip('.')}.")
        assignment = self.coursedir.assignment_id
        released = self._notebook(self.coursedir.release_directory)
        asked = students(self.coursedir, assignment)
        if not asked:
            self._refuse(f"there is no submission of {assignment} by {self.coursedir.student_id} in "
                         f"{self.coursedir.submitted_directory}/: collect them first.")  # fmt: skip
        root = Path(self.coursedir.root)
        keep_out(Path(self.secret_file), root / self.coursedir.source_directory, root / "gradebook.db")
        with tempfile.TemporaryDirectory(prefix="nbgrader-week-") as room:
            self._staged = {
                student: stage(student, folder, Path(room), assignment, released) for student, folder in asked.items()
            }
            results = self._results()
            failed = [student for student in asked if results[student]["state"] == GRADER_ERROR]
            for student in failed:
                self.log.error("%s stays ungraded, the grader failed: %s", student, clean(results[student]["error"]))
                del self._staged[student]
            self._check_points(released, results)
            self._graded = {student: self._gather(staged, results[student]) for student, staged in self._staged.items()}
            self._copy_nothing_from_source()
            with self._submitted_in(room):
                if self._staged:
                    super().start()
        with Gradebook(self.coursedir.db_url, self.coursedir.course_id) as gradebook:
            renew(gradebook, self.config, assignment)  # also of those that were skipped: the policy may be another now
        if failed:
            self._refuse(f"{len(failed)} of {len(asked)} submissions have no grade: run autograde again to try them.")

    def init_notebooks(self):
        self.notebooks = []
        self.assignments = {
            str(staged.folder): [str(staged.folder / f"{staged.folder.name}.ipynb")] for staged in self._staged.values()
        }

    def init_destination(self, assignment_id, student_id):
        """Skip what is graded already, whole and from the same files; do again what is not."""
        destination = Path(self._format_dest(assignment_id, student_id))
        if self._graded[student_id].unchanged and not self.force:
            self.log.info("Skipping existing assignment: %s", destination)
            return False
        if destination.exists():
            self.log.info("Removing existing assignment: %s", destination)
            rmtree(str(destination))
        return True

    def init_single_notebook_resources(self, notebook_filename):
        resources = super().init_single_notebook_resources(notebook_filename)
        return {**resources, "week": self._graded[resources["nbgrader"]["student"]]}

    def _results(self):
        """{student: result} of the two-zone grader."""
        folders = {student: staged.handed_in for student, staged in self._staged.items()}
        results_folder = Path(self.coursedir.root) / RESULTS / self.coursedir.assignment_id
        try:
            return ask(folders, results_folder, self.secret_file, self.sandboxed, self.jobs, self.tests)
        except NothingGraded as error:
            self._refuse(f"nothing is graded: {error}")

    def _gather(self, staged, result):
        autograded = Path(self._format_dest(staged.folder.name, staged.student)) / f"{staged.folder.name}.ipynb"
        before = _stamp_of(autograded)
        rubrics = {nbgrader_of(cell)["grade_id"]: cell.source for cell in self._source_cells() if is_answer(cell)}
        made_from = [result, staged.notes, sorted(staged.unsure), rubrics, *(
            path.read_text(encoding="utf-8", errors="replace")
            for path in (staged.folder / name for name in (f"{staged.folder.name}.ipynb", TIMESTAMP, KEY))
            if path.is_file()
        )]  # fmt: skip
        stamp = hashlib.sha256(json.dumps(made_from, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()
        bonus_before, unchanged = before.get("bonus", {}), before.get("stamp") == stamp
        return Graded(result, staged.notes, staged.unsure, rubrics, bonus_before, stamp, unchanged)

    def _check_points(self, released, results):
        """The released notebook must offer what the tests give, or grades would be wrong in silence."""
        if self.tests != ["tests"] or not results:
            return
        tests = next((result["tests"] for result in results.values() if result["tests"]), [])
        for cell in filter(is_check, released.cells) if tests else ():
            part, points = nbgrader_of(cell)["grade_id"], nbgrader_of(cell)["points"]
            possible = sum(test["points"] for test in tests if test["part"] == part)
            if part in parts.CORE and possible != points:
                self._refuse(f"the released notebook gives {points:g} points for {part}, the tests give {possible}: "
                             "make the notebook and generate the assignment again.")  # fmt: skip

    def _notebook(self, step):
        """The assignment's own notebook in one of nbgrader's folders."""
        assignment = self.coursedir.assignment_id
        path = Path(self.coursedir.format_path(step, ".", assignment)) / f"{assignment}.ipynb"
        try:
            return nbformat.read(path, as_version=4)
        except FileNotFoundError:
            self._refuse(f"{path} is missing: run  nbgrader generate_assignment {assignment}  first.")

    def _source_cells(self):
        return self._notebook(self.coursedir.source_directory).cells

    def _copy_nothing_from_source(self):
        """nbgrader copies what lies beside the source's notebook to each student, for code that would run there."""
        assignment = self.coursedir.assignment_id
        source = Path(self.coursedir.format_path(self.coursedir.source_directory, ".", assignment))
        self.exclude_overwriting = {assignment: [str(path.relative_to(source)) for path in source.rglob("*")]}

    @contextmanager
    def _submitted_in(self, room):
        """nbgrader finds the submissions in `room`."""
        before = self.coursedir.submitted_directory
        self.coursedir.submitted_directory = room
        try:
            yield
        finally:
            self.coursedir.submitted_directory = before

    def _refuse(self, sentence):
        self.log.error(sentence)
        raise NbGraderException(sentence)


def _stamp_of(path):
    """What an autograded notebook says that it was made from; empty where it is missing or was not written whole."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))["metadata"][STAMP]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}
