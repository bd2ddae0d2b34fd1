"""An nbgrader course folder as our commands see it: its settings and where its gradebook is."""

from pathlib import Path

from grading.grader.inside.text import clean

CONFIG = "nbgrader_config.py"


# What some part of nbgrader reads as more than a letter: its database's address, or its patterns of files.
SIGNS = "?*[]"


class CourseError(Exception):
    """The folder is no course that can be used; the message is one sentence."""


def path_trouble(folder):
    """Why nbgrader can't work in a folder of this name: a sentence, or empty."""
    path = str(Path(folder).absolute())
    if found := [sign for sign in path if sign in SIGNS or sign < " "]:
        return f"{clean(path)} holds {clean(found[0])}, which nbgrader takes for a sign of its own: rename the folder."
    return ""


class Course:
    """The settings of a course folder, read as nbgrader reads them."""

    def __init__(self, folder):
        from nbgrader.coursedir import CourseDirectory
        from traitlets import TraitError
        from traitlets.config import PyFileConfigLoader

        self.folder = Path(folder).absolute()
        if trouble := path_trouble(folder):
            raise CourseError(trouble)
        if not (self.folder / CONFIG).is_file():
            raise CourseError(f"{folder} is no course folder: there is no {CONFIG} in it.")
        try:
            self.config = PyFileConfigLoader(CONFIG, path=str(self.folder)).load_config()
            self.directory = CourseDirectory(config=self.config, root=str(self.folder))
        except TraitError as error:
            raise CourseError(f"{self.folder / CONFIG}: {error}") from None
        except SystemExit as error:
            raise CourseError(str(error)) from None
        except Exception as error:  # the file is Python that the instructor wrote: anything may be raised
            raise CourseError(f"{self.folder / CONFIG} can't be read: {type(error).__name__}: {error}") from None

    @property
    def db_url(self):
        return self.directory.db_url

    @property
    def course_id(self):
        return self.directory.course_id

    def submitted(self, student, assignment):
        """Where nbgrader looks for a submission."""
        return Path(self.directory.format_path(self.directory.submitted_directory, student, assignment))
