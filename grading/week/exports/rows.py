"""Where every student stands in one assignment: the mark that may leave the house, or why there is none yet.

A mark is the gradebook's score, with as much of its bonus as the course counts, less the penalty for lateness, never
below 0. While the grader itself has
failed on a submission nothing is exported; while a cell waits for a person its student is left out by name.
"""

import csv
import json
from dataclasses import dataclass, replace
from datetime import datetime

from nbgrader.api import MissingEntry
from traitlets import TraitError

from grading.grader.results import RESULTS, file_name
from grading.grader.states import GRADER_ERROR
from grading.week.bonus_policy import BonusPolicy
from grading.week.collect import OWNERLESS


class ExportError(Exception):
    """Nothing is exported; the message is one sentence."""


@dataclass(frozen=True)
class Row:
    """One student in one assignment."""

    student: str
    first: str
    last: str
    email: str
    lms: str
    mark: float | None = None  # None: not final
    why: str = ""  # why it is not final
    waiting: tuple = ()  # the cells that need manual grading
    raw: float = 0.0  # core and bonus, before the penalty
    bonus: float = 0.0  # what counts of it
    penalty: float = 0.0
    time: datetime | None = None  # of the hand-in, in UTC
    submitted: bool = True
    written: tuple = ()  # (cell, score, of) of what a person grades

    @property
    def core(self):
        """The points that are no bonus, before the penalty."""
        return round(self.raw - self.bonus, 2)


@dataclass(frozen=True)
class Standing:
    """One assignment: its points, its deadline in UTC, and a Row for each student in order of their ids."""

    assignment: str
    of: float
    due: datetime | None
    rows: tuple
    bonus: BonusPolicy

    @property
    def final(self):
        """The rows that have a mark."""
        return tuple(row for row in self.rows if row.mark is not None)

    def sentences(self):
        """What the instructor must know about those who are left out, or have 0 because nothing came."""
        left_out = {}
        for row in self.rows:
            if row.mark is None:
                left_out.setdefault(row.why, []).append(row.student)
        yield from (f"left out, {why}: {', '.join(students)}" for why, students in left_out.items())
        absent = [row.student for row in self.final if not row.submitted]
        if absent:
            yield f"handed in nothing and has 0: {', '.join(absent)}"
        if self.bonus.most is not None:
            yield f"of the bonus at most {self.bonus.most:g} points count (c.BonusPolicy.most)"
        elif highest := max((row.mark for row in self.final if row.mark > self.of), default=0):
            yield (
                f"marks reach {highest:g} of {self.of:g}, as all of the bonus counts: "
                "c.BonusPolicy.most in nbgrader_config.py sets a limit"
            )


def standing(gradebook, assignment, results, came_in, config, students=()):
    """The Standing of an assignment; ExportError where one of the students has no grade by the grader's fault.

    `results` is the folder of the two-zone grader's results, `students` limits the rows to these ids; see
    `standing_of_all` for the rest.
    """
    held = standing_of_all(gradebook, assignment, came_in, config)
    unknown = sorted(set(students) - {row.student for row in held.rows})
    if unknown:
        raise ExportError(f"the gradebook has no student {unknown[0]}: add them, or correct the name.")
    rows = tuple(row for row in held.rows if not students or row.student in students)
    failed = [row.student for row in rows if (graded_by_us(results, row.student) or {}).get("state") == GRADER_ERROR]
    if failed:
        raise ExportError(
            f"the grader failed on {', '.join(failed)}, which is never a student's zero: "
            f"run `nbgrader autograde {assignment} --force` for them, then export again."
        )
    return replace(held, rows=rows)


def standing_of_all(gradebook, assignment, came_in, config):
    """The Standing of an assignment with a row for each student of the gradebook, by the course's `config`.

    `came_in(student)` says what is there of a student whom the gradebook has no submission of; "" for nothing.
    """
    try:
        entry = gradebook.find_assignment(assignment)
    except MissingEntry:
        raise ExportError(
            f"the gradebook has no assignment {assignment}: run `nbgrader generate_assignment {assignment}` first."
        ) from None
    try:
        policy = BonusPolicy(config=config)
    except TraitError as error:
        raise ExportError(str(error)) from None
    students = sorted(gradebook.students, key=lambda student: student.id)
    rows = tuple(_row(gradebook, assignment, student, came_in, policy) for student in students)
    return Standing(assignment, round(entry.max_score, 2), entry.duedate, rows, policy)


def ungraded_work(folder, place, assignment):
    """What came in, for `standing_of_all`: by the folder of collected work and by the intake table.

    `folder` is the course's, `place(student)` where work of this assignment is collected.
    """
    table = intake_table(folder, assignment) or []
    lost = {row["who"] for row in table if row["collected"] != "yes"}
    ownerless = any(row["collected"] == OWNERLESS for row in table)

    def came_in(student):
        if place(student).is_dir():
            return "collected, but not autograded yet"
        if student in lost:
            return "what came in could not be collected"
        if ownerless:
            return f"work came in of which it is not settled whose it is: see {intake_file(folder, assignment)}"
        return ""

    return came_in


def intake_file(folder, assignment):
    """The table that `collect` writes."""
    return folder / f"intake-{assignment}.csv"


def intake_table(folder, assignment):
    """The rows of the table that `collect` wrote into the course's folder; None where there is none."""
    try:
        with intake_file(folder, assignment).open(encoding="utf-8", newline="") as stream:
            return list(csv.DictReader(stream))
    except FileNotFoundError:
        return None


def graded_by_us(results, student):
    """The two-zone grader's result of one student, or None."""
    path = results / RESULTS / f"{file_name(student)}.json"
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError:
        raise ExportError(f"{path} is not whole: delete it and autograde {student} again.") from None


def _row(gradebook, assignment, student, came_in, policy):
    names = (student.first_name, student.last_name, student.email, student.lms_user_id)
    who = (student.id, *(name or "" for name in names))
    try:
        submission = gradebook.find_submission(assignment, student.id)
    except MissingEntry:
        why = came_in(student.id)
        return Row(*who, mark=None if why else 0.0, why=why, submitted=False)
    grades = [grade for notebook in submission.notebooks for grade in notebook.grades]
    grades.sort(key=lambda grade: (grade.notebook.name, grade.name))
    waiting = [grade.name for grade in grades if grade.needs_manual_grade]
    earned, penalty = submission.score, submission.late_submission_penalty or 0.0
    extra = sum(grade.extra_credit or 0.0 for grade in grades)
    bonus = policy.counts(extra)
    raw = earned - extra + bonus
    penalty *= raw / earned if earned else 1.0  # the gradebook's is of all that was earned
    written = tuple(
        (grade.name, None if grade.needs_manual_grade else grade.score, grade.max_score)
        for grade in grades
        if grade.cell.cell_type == "markdown"
    )
    return Row(
        *who, mark=None if waiting else round(max(0.0, raw - penalty), 2),
        why=f"needs manual grading ({', '.join(waiting)})" if waiting else "", raw=round(raw, 2), bonus=round(bonus, 2),
        waiting=tuple(waiting), penalty=round(penalty, 2), time=submission.timestamp, written=written,
    )  # fmt: skip
