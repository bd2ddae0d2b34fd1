"""nbgrader's export plugins: its own table without its gaps, Canvas, Moodle, Gradescope.

    nbgrader export --exporter=exporters.CanvasExporter [--to=FILE]      in the course's folder

A student who has no final mark is in none of the files, so that an import leaves what the platform has; who
that is, is said in the log.
"""

import json
import sys
from pathlib import Path

from nbgrader.plugins import ExportPlugin
from traitlets import Unicode

from grading.grader.results import file_name, write
from grading.grader.spreadsheet import as_csv
from grading.week.exports.gradescope import results_json
from grading.week.exports.rows import ExportError, graded_by_us, standing, ungraded_work
from grading.week.late_policy import renew


class OurExporter(ExportPlugin):
    """What they have in common: the standing in one assignment, and files written whole or not at all."""

    default = ""  # where to, without --to
    results = Unicode("", help="folder of the grader's results; the course's own results/ by default").tag(config=True)

    def export(self, gradebook):
        """nbgrader's door: a sentence and exit code 1 where nothing can be exported."""
        try:
            for sentence in self.write(gradebook):
                self.log.warning(sentence)
        except ExportError as error:
            self.log.error("Nothing is exported: %s", error)
            sys.exit(1)

    def write(self, gradebook):
        """Write the export; the sentences that the instructor must read."""
        held, to = self.standing(gradebook), Path(self.to or self.default)
        try:
            self.put(to, held)
        except OSError as error:
            raise ExportError(f"{to} can't be written ({error.strerror}): name another place with --to.") from None
        self.log.info("Exported to %s", to)
        return list(held.sentences())

    def standing(self, gradebook):
        """The Standing in the assignment that is asked for, or in the only one that there is.

        The penalties are worked out again before: marks by hand have come since autograding.
        """
        names = [str(name) for name in self.assignment] or [entry.name for entry in gradebook.assignments]
        if len(names) != 1:
            there = f"there are {', '.join(names)}" if names else "the gradebook has none"
            raise ExportError(f"name one assignment, as in --assignment=\"['week06']\": {there}.")
        if names[0] in (entry.name for entry in gradebook.assignments):
            renew(gradebook, self.parent.config, names[0])
        students = [str(name) for name in self.student]
        results, came_in = self.results_of(names[0]), self._came_in(names[0])
        return standing(gradebook, names[0], results, came_in, self.parent.config, students)

    def results_of(self, assignment):
        """The folder of the two-zone grader's results of an assignment."""
        return Path(self.results or Path(self.parent.coursedir.root) / "results") / assignment

    def _came_in(self, assignment):
        course = self.parent.coursedir

        def place(student):
            return Path(course.format_path(course.submitted_directory, student, assignment))

        return ungraded_work(Path(course.root), place, assignment)

    def put(self, to, held):
        """Write what a Standing holds."""
        raise NotImplementedError


class GradesExporter(OurExporter):
    """The columns of nbgrader's own CSV, then core and bonus; a comma or a formula in a name does no harm."""

    default = "grades.csv"

    def put(self, to, held):
        titles = (
            "assignment", "duedate", "timestamp", "student_id", "last_name", "first_name", "email", "raw_score",
            "late_submission_penalty", "score", "max_score", "core_score", "bonus_score",
        )  # fmt: skip
        rows = (
            (held.assignment, str(held.due or ""), str(row.time or ""), row.student, row.last, row.first, row.email,
             number(row.raw), number(row.penalty), number(row.mark), number(held.of), number(row.core),
             number(row.bonus))
            for row in held.final
        )  # fmt: skip
        write(to, as_csv(titles, *rows))


class CanvasExporter(OurExporter):
    """Canvas's gradebook import: its five columns that say who, the assignment, and its points in row 2."""

    default = "canvas.csv"

    def put(self, to, held):
        titles = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section", held.assignment)
        points = ("Points Possible", "", "", "", "", number(held.of))
        rows = ((f"{row.last}, {row.first}", row.lms, "", row.student, "", number(row.mark)) for row in held.final)
        write(to, as_csv(titles, points, *rows))


class MoodleExporter(OurExporter):
    """Moodle's grade import: map "ID number" or "Email address" to the user, and the last column to the grade item."""

    default = "moodle.csv"

    def put(self, to, held):
        titles = ("ID number", "Email address", "First name", "Last name", held.assignment)
        rows = ((row.student, row.email, row.first, row.last, number(row.mark)) for row in held.final)
        write(to, as_csv(titles, *rows))


class GradescopeExporter(OurExporter):
    """Gradescope's results.json for each student who handed in, in a folder of the student's name."""

    default = "gradescope"

    def put(self, to, held):
        for row in held.final:
            if row.submitted:
                result = graded_by_us(self.results_of(held.assignment), row.student)
                folder = to / file_name(row.student)
                folder.mkdir(parents=True, exist_ok=True)
                write(folder / "results.json", json.dumps(results_json(row, result), indent=1))


def number(value):
    """A mark as platforms read it, whatever the language of the machine."""
    return f"{value:.2f}"
