"""What is known of the class, from the gradebook, the grader's results and the intake table."""

from collections import Counter
from dataclasses import dataclass, field
from statistics import mean, median

from grading.grader.results import RESULTS, file_name
from grading.grader.states import (
    ADVICE,
    CRASHED,
    FAILED,
    GRADER_ERROR,
    NOT_STARTED,
    NOT_SUBMITTED,
    OUT_OF_MEMORY,
    PASSED,
    REFUSED,
    TIMED_OUT,
    WAITING,
)
from grading.week.exports.rows import graded_by_us, intake_table, standing_of_all, ungraded_work
from grading.week.late_policy import renew
from machinery import parts
from nanolm.student import hint

PAUSE = 600  # seconds without a result that part one run of the grader from the next
OPEN = (NOT_STARTED, NOT_SUBMITTED, WAITING, ADVICE)  # states that say nothing against the code
ENDED = (TIMED_OUT, OUT_OF_MEMORY, CRASHED, REFUSED)  # the worker did


@dataclass
class Class:
    """The class in one assignment."""

    standing: object  # of grading.week.exports
    results: dict  # student -> result of the grader, of those that it graded
    errors: list = field(default_factory=list)  # (student, sentence): the grader failed
    intake: list | None = None  # rows of the intake's table; None where nothing was collected by it
    finished: dict = field(default_factory=dict)  # student -> when the result was written, seconds since 1970

    @property
    def names(self):
        """Student id -> how the page calls them: by name, and by id too where two have the same name."""
        names = {row.student: f"{row.first} {row.last}".strip() or row.student for row in self.standing.rows}
        often = Counter(names.values())
        return {student: name if often[name] == 1 else f"{name} ({student})" for student, name in names.items()}

    @property
    def submitted(self):
        """The rows of those who handed in."""
        return [row for row in self.standing.rows if row.submitted]


def gather(course, gradebook, assignment):
    """The Class in one assignment of a course."""
    folder = course.folder / "results" / assignment
    if assignment in (entry.name for entry in gradebook.assignments):
        renew(gradebook, course.config, assignment)  # marks by hand may have come since autograding
    came_in = ungraded_work(course.folder, lambda student: course.submitted(student, assignment), assignment)
    held = standing_of_all(gradebook, assignment, came_in, course.config)
    found = Class(held, {}, intake=intake_table(course.folder, assignment))
    for row in held.rows:
        result = graded_by_us(folder, row.student)
        if result is None:
            continue
        if result["state"] == GRADER_ERROR:
            found.errors.append((row.student, result["error"]))
        else:
            found.results[row.student] = result
            found.finished[row.student] = (folder / RESULTS / f"{file_name(row.student)}.json").stat().st_mtime
    return found


@dataclass(frozen=True)
class Part:
    """How the class did in one part: the share of its points on average, and how many have all, some, none.

    Who has none because no test could ask the code yet is counted in `open`, not in `none`.
    """

    name: str
    points: int
    bonus: bool
    share: float
    full: int
    some: int
    none: int
    open: int


def by_part(results):
    """A Part for each part of the week that gives points, in the week's order."""
    found = []
    for part in parts.PARTS:
        tests = [[test for test in result["tests"] if test["part"] == part] for result in results.values()]
        points = max((sum(test["points"] for test in of) for of in tests), default=0)
        if points:
            earned = [sum(test["earned"] for test in of) for of in tests]
            full, without = earned.count(points), [of for of, sum_of in zip(tests, earned, strict=True) if not sum_of]
            unasked = sum(all(test["state"] in OPEN for test in of if test["points"]) for of in without)
            some, none = len(earned) - full - len(without), len(without) - unasked
            share, bonus = mean(earned) / points, part in parts.DEPTH
            found.append(Part(part, points, bonus, share, full, some, none, unasked))
    return found


@dataclass(frozen=True)
class Made:
    """A known mistake that somebody made: what the bank says of it, and who."""

    about: dict
    students: tuple


def mistakes(results):
    """The known mistakes that the class made, the most frequent first; a student counts once for each."""
    known, who = hint.mistakes(), {}
    for student, result in results.items():
        for name in {test["mistake"] for test in result["tests"] if test["mistake"] in known}:
            who.setdefault(name, []).append(student)
    order = sorted(who, key=lambda name: (-len(who[name]), list(known).index(name)))
    return [Made(known[name], tuple(sorted(who[name]))) for name in order]


def counts(results):
    """Mistake id -> how many students made it, as the page of the bank reads it."""
    return {made.about["id"]: len(made.students) for made in mistakes(results)}


def unnamed(results):
    """(test, students) of tests that failed and are none of the known mistakes, the most frequent first."""
    who = {}
    for student, result in results.items():
        for test in result["tests"]:
            if test["state"] == FAILED and not test["mistake"]:
                who.setdefault(test["name"], []).append(student)
    return sorted(((name, tuple(sorted(of))) for name, of in who.items()), key=lambda pair: (-len(pair[1]), pair[0]))


def extremes(results):
    """(tests that nobody passed, tests that everybody passed), by name, of those who tried them.

    Who has not started a test's exercise says nothing about the test. A test that nobody tried is in neither.
    """
    tried, passed, order = Counter(), Counter(), {}
    for result in results.values():
        for test in result["tests"]:
            order[test["name"]] = test["part"]
            tried[test["name"]] += test["state"] not in OPEN
            passed[test["name"]] += test["state"] == PASSED
    asked = [(name, part, tried[name]) for name, part in order.items() if tried[name]]
    nobody = [row for row in asked if not passed[row[0]]]
    everybody = [row for row in asked if passed[row[0]] == row[2]]
    return nobody, everybody


def states(results):
    """(state, students) of each way in which student code ended its worker."""
    who = {}
    for student, result in results.items():
        for state in {test["state"] for test in result["tests"]}.intersection(ENDED):
            who.setdefault(state, []).append(student)
    return sorted((state, tuple(sorted(of))) for state, of in who.items())


@dataclass(frozen=True)
class Run:
    """One run of the grader, as the times of its results tell: from the first to the last of them."""

    begin: float
    seconds: float
    results: int
    longest: float  # the longest wait for a result
    after: str  # who was being graded then


def runs(finished):
    """The runs in which the results that are valid now were written, in order."""
    order = sorted(finished.items(), key=lambda pair: (pair[1], pair[0]))
    groups = []
    for student, time in order:
        if not groups or time - groups[-1][-1][1] > PAUSE:
            groups.append([])
        groups[-1].append((student, time))
    return [_run(group) for group in groups]


def _run(group):
    waits = [(time - before, student) for (_, before), (student, time) in zip(group, group[1:], strict=False)]
    longest, after = max(waits, default=(0.0, group[0][0]))
    return Run(group[0][1], group[-1][1] - group[0][1], len(group), longest, after)


def late(standing):
    """The rows that came after the deadline, the latest first."""
    found = [row for row in standing.rows if row.time and standing.due and row.time > standing.due]
    return sorted(found, key=lambda row: row.time, reverse=True)


def ungraded(standing):
    """(cell, students) for each cell that waits for a person."""
    who = {}
    for row in standing.rows:
        for cell in row.waiting:
            who.setdefault(cell, []).append(row.student)
    return sorted(who.items())


@dataclass(frozen=True)
class Figures:
    """What the class has on average before penalties, of the week's own points and of bonus; the marks' median."""

    core: float
    bonus: float
    median: float


def figures(rows, marks):
    """The Figures of those who handed in, or None without any."""
    if not rows:
        return None
    return Figures(mean(row.core for row in rows), mean(row.bonus for row in rows), median(marks))


def to_do(found, nobody, pairs):
    """(place on the page, sentence) of what waits for a person today, the most pressing first."""
    waiting = [row.student for row in found.standing.rows if row.waiting]
    lost = [row for row in found.intake or () if row["collected"] != "yes"]
    ungraded = [row.student for row in found.standing.rows if not row.submitted and row.why]
    for count, place, one, many in (
        (len(found.errors), "errors", "submission has no grade by our fault: autograde it again",
         "submissions have no grade by our fault: autograde them again"),
        (len(lost), "intake", "thing that came in was not collected", "things that came in were not collected"),
        (len(ungraded), "intake", "submission is not graded yet", "submissions are not graded yet"),
        (len(waiting), "written", "student waits for marks by hand", "students wait for marks by hand"),
        (len(nobody), "tests", "test was passed by nobody who tried: was it explained?",
         "tests were passed by nobody who tried: were they explained?"),
        (len(pairs), "similar", "pair of similar programs to look at", "pairs of similar programs to look at"),
    ):  # fmt: skip
        if count:
            yield place, f"{count} {one if count == 1 else many}"
