"""`python -m grading demo`: the whole week of an instructor, with a class of 30 that is made up for it.

It makes a course in build/demo, releases the week, collects what Canvas would give, autogrades with nbgrader, marks
the written answers by nbgrader's API, writes feedback, exports and the class report, and prints the table. Each step
is a command that an instructor would type; what it says goes to build/demo/log.txt. Run it again and nothing changes.
"""

import hashlib
import json
import re
import sys
import time
from pathlib import Path

from grading import preflight
from grading.demo import forked
from grading.demo import made_up_class as made_up
from grading.paths import ROOT
from grading.week.collect import ASSIGNMENT
from grading.week.course_folder import Course
from grading.week.databases import DatabaseError, open_gradebook
from grading.week.exports.rows import standing_of_all

HELP = "an instructor's whole week, with a class of 30 that is made up for it"
FOLDER = ROOT / "build" / "demo"
NBGRADER, OURS = (sys.executable, "-m", "nbgrader"), (sys.executable, "-m", "grading")
NOTEBOOK = (ASSIGNMENT, ASSIGNMENT)  # the notebook has the assignment's name
COMMENTED, COMMENT = 2, "Clear and right; say also where it stops being true."
WRITERS = {student.id: student for student in made_up.CLASS}
SHARE = {"good": 1.0, "short": 0.5, "off": 0.0, "hostile": 0.0, "none": 0.0}  # kind of answers -> share of the points


UNSANDBOXED = "The code of this made-up class runs without walls (--unsandboxed); no other is graded so"
# What nbgrader says besides the reason, and what it begins a line with.
BESIDES = re.compile(r"\s*$|\[\w+ \| (INFO|WARNING)\]|.*(see the the above traceback|There was an error processing)")
FRONT = re.compile(r"\s*(\[\w+ \| \w+\] )?")


class DemoFailed(Exception):
    """A step did not do what it should; the message is one sentence."""


class Demo:
    """The course, the class, what is written for them and the log, in one folder."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.course, self.lms, self.bundle = self.folder / "course", self.folder / "class", self.folder / "release"
        self.log, self.state = self.folder / "log.txt", self.folder / "state.json"
        self.no_walls = preflight.walls()  # why this machine has none: then our own made-up class goes without

    def steps(self):
        """(title, what is run, exit codes that are fine), in order."""
        released = self.course / "release" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb"
        archive, roster, times = (self.lms / name for name in (made_up.ARCHIVE, made_up.ROSTER, made_up.TIMES))
        deadline = ("db", "assignment", "add", ASSIGNMENT, f"--duedate={made_up.DUE}")
        course = ("--course", self.course)
        unsandboxed = ("--WeekAutograde.sandboxed=False",) if self.no_walls else ()
        return (
            ("make a course", (*OURS, "course", self.course), (0,)),
            ("generate the release", (*NBGRADER, "generate_assignment", ASSIGNMENT, "--force"), (0,)),
            ("release", (*NBGRADER, "release_assignment", ASSIGNMENT, "--force"), (0,)),
            ("make the students' bundle", (*OURS, "release", "--out", self.bundle), (0,)),
            ("30 students hand in", (*OURS, "demo-class", released, self.lms), (0,)),
            ("take in the roster", (*NBGRADER, "db", "student", "import", roster), (0,)),
            ("set the deadline", (*NBGRADER, *deadline), (0,)),
            # 1: something of somebody can't be taken in, as the table says
            ("collect", (*OURS, "collect", archive, *course, "--times", times), (0, 1)),
            ("autograde", (*NBGRADER, "autograde", ASSIGNMENT, "--force", *unsandboxed), (0,)),
            ("mark the written answers", self.mark, (0,)),
            ("write feedback", (*NBGRADER, "generate_feedback", ASSIGNMENT, "--force"), (0,)),
            ("export", (*OURS, "export", *course), (0,)),
            ("write the class report", (*OURS, "report", *course, "--out", self.folder / "report.html"), (0,)),
        )

    def run(self):
        """Run all steps, print the time of each and the table; DemoFailed where something is not as it should be."""
        self.course.mkdir(parents=True, exist_ok=True)
        self.log.write_text("", encoding="utf-8")
        if self.no_walls:
            print(f"{UNSANDBOXED}: {self.no_walls}.")
        for title, action, fine in self.steps():
            print(f"{title} ...", end=" ", flush=True)
            start = time.monotonic()
            code = action() if callable(action) else self._command(action)
            print(f"{time.monotonic() - start:.1f} s", flush=True)
            if code not in fine:
                words = "." if callable(action) else f": {last_words(self.log.read_text('utf-8', 'replace'))}"
                raise DemoFailed(f"{title!r} ended with exit code {code}{words}")
        results = self.results()
        print("", *table(results, self.standing()), "", sep="\n")
        wrong = list(made_up.disagreements(json.loads((self.lms / made_up.EXPECTED).read_text("utf-8")), results))
        if wrong:
            raise DemoFailed("; ".join(wrong))
        print("Every grade that is known beforehand is as expected.", self.compared(), sep="\n")
        print(f"The class report: {self.folder / 'report.html'}")

    def _command(self, command):
        with self.log.open("a", encoding="utf-8") as log:
            print("\n$", *command, file=log, flush=True)
            place = self.course if command[: len(NBGRADER)] == NBGRADER else ROOT
            return forked.run(command, place, log)

    def mark(self):
        """Mark the written answers as formgrader does: two with a comment, the others by what their writer is worth."""
        with self.gradebook() as gradebook:
            for number, grade in enumerate(answers(gradebook)):
                grade.manual_score = grade.max_score * SHARE[WRITERS[grade.student.id].answers]
                grade.needs_manual_grade = False
                if number < COMMENTED:
                    gradebook.find_comment(grade.name, *NOTEBOOK, grade.student.id).manual_comment = COMMENT
            gradebook.db.commit()
        return 0

    def results(self):
        """{student: what the two-zone grader says}."""
        folder = self.course / "results" / ASSIGNMENT / "results"
        found = (json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("[!.]*.json")))
        return {result["submission"]: result for result in found}

    def compared(self):
        """Keep what all that was written comes to, and say how it differs from the last time."""
        now = {name: hashlib.sha256(text).hexdigest() for name, text in self.written()}
        before = json.loads(self.state.read_text(encoding="utf-8")) if self.state.is_file() else None
        self.state.write_text(json.dumps(now, indent=1), encoding="utf-8")
        if before is None:
            return "Run it again: nothing will change."
        changed = sorted(name for name in {*now, *before} if now.get(name) != before.get(name))
        if changed:
            raise DemoFailed(f"since the last run these have changed: {', '.join(changed)}.")
        return f"Nothing has changed since the last run: {len(now)} files and all marks are the same."

    def written(self):
        """(name, bytes) of all that must be the same the next time: marks, results, what was released and exported."""
        with self.gradebook() as gradebook:
            yield "the gradebook's marks", "\n".join(marks(gradebook)).encode()
        for folder in ("exports", "results", "release", "submitted"):
            for path in sorted((self.course / folder).rglob("[!.]*")):
                if path.is_file() and "times" not in path.parts:
                    yield path.relative_to(self.course).as_posix(), path.read_bytes()

    def gradebook(self):
        """The course's gradebook, opened."""
        course = Course(self.course)
        return open_gradebook(course.db_url, course.course_id)

    def standing(self):
        """Where every student stands; see grading/week/exports/rows.py."""
        with self.gradebook() as gradebook:
            return standing_of_all(gradebook, ASSIGNMENT, lambda student: True, Course(self.course).config)


def last_words(log):
    """What the last command of a log said at its end, besides what it always says."""
    said = [line for line in log.split("\n$ ")[-1].splitlines()[1:] if not BESIDES.match(line)]
    return FRONT.sub("", said[-1], count=1) if said else "it said nothing."


def answers(gradebook):
    """The grades of all written answers that somebody wrote, in order of students."""
    submissions = gradebook.assignment_submissions(ASSIGNMENT)
    grades = [grade for submission in submissions for notebook in submission.notebooks for grade in notebook.grades]
    written = [grade for grade in grades if grade.cell.cell_type == "markdown" and grade.auto_score is None]
    return sorted(written, key=lambda grade: (grade.student.id, grade.name))


def marks(gradebook):
    """Every mark of the gradebook as a line."""
    for submission in gradebook.assignment_submissions(ASSIGNMENT):
        grades = [grade for notebook in submission.notebooks for grade in notebook.grades]
        shown = [f"{grade.name} {grade.auto_score} {grade.manual_score} {grade.extra_credit}" for grade in grades]
        yield f"{submission.student.id} {submission.late_submission_penalty} {sorted(shown)}"


def table(results, standing):
    """The class as lines of text: points of the code, bonus, written answers, penalty, mark, mistakes by name."""
    yield f"{'student':<9} {'code':>4} {'bonus':>5} {'written':>7} {'late':>6} {'mark':>6}  mistakes"
    yield "-" * 100
    for row in standing.rows:
        result = results.get(row.student)
        if result is None:
            yield f"{row.student:<9} nothing that could be graded: see intake-{ASSIGNMENT}.csv"
            continue
        code = made_up.core_points(result)
        written = sum(score or 0 for _, score, _ in row.written)
        named = dict.fromkeys(test["mistake"] for test in result["tests"] if test["mistake"])
        late = f"-{row.penalty:g}" if row.penalty else ""
        mark = "open" if row.mark is None else f"{row.mark:g}"
        yield (
            f"{row.student:<9} {code:>4} {result['points'] - code:>5} {written:>7g} {late:>6} {mark:>6}  "
            f"{', '.join(named)[:60]}"
        )
    if not all(result["sandboxed"] for result in results.values()):
        yield f"{UNSANDBOXED}."


def add_arguments(parser):
    """It takes none."""


def run(args):
    """Run the demo in build/demo; the exit code is 1, with a sentence, where something is not as it should be."""
    try:
        Demo(FOLDER).run()
    except (DemoFailed, DatabaseError) as error:
        print(f"The demo stops: {error}", file=sys.stderr)
        return 1
    return 0
