"""Our grader against stock `nbgrader autograde`, on the same honest submissions.

Stock nbgrader opens the week's notebook in a kernel, where a self-check cell for each part runs that part's public
tests on the student's files. Whole commands are timed, ours before, between and after both halves of stock's, so that a
machine whose speed drifts decides nothing. The scores of the core parts must be the same both ways.
"""

import csv
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from grading.grader.bubblewrap import no_walls
from grading.paths import REFERENCE, ROOT
from grading.proof.bank import load_mistakes, load_variants, materialise
from grading.proof.bench.ratio import Ratio
from grading.proof.marks import WEEK

COUNT = 20
WEEK_NAME, NOTEBOOK = "week06", "week06.ipynb"
CONFIG = """
c = get_config()
c.CourseDirectory.root = {course!r}
c.CourseDirectory.course_id = "bench"
c.Autograde.exclude_overwriting = {{"week06": {files!r}}}
c.ExecutePreprocessor.timeout = c.Execute.timeout = 300
"""


def ratios(runs):
    """Seconds a submission: stock, ours with two jobs; then ours with one job and with two.

    One run, whatever is asked: its twenty submissions are twenty repetitions, and stock takes minutes for them.
    """
    with tempfile.TemporaryDirectory() as room:
        yield from _measured(Path(room), min(runs, 1))


def _measured(room, runs):
    make(room / "class")
    course = make_course(room / "course", room / "class")
    (room / "secret").write_text("the secret of this bench", encoding="utf-8")
    stock, one, two = [], [], []
    for _ in range(runs):
        before, points = ours(room, jobs=2)
        first = stocks(course, "A")
        one.append(ours(room, jobs=1)[0])
        second = stocks(course, "B")
        after, _ = ours(room, jobs=2)
        stock.append((first + second) / COUNT)
        two.append(statistics.mean((before, after)))
        _same(scores(course), points)
    yield Ratio("grading a submission", "nbgrader autograde", "grading run, 2 jobs", tuple(stock), tuple(two))
    yield Ratio("jobs", "grading run, 1 job", "2 jobs", tuple(one), tuple(two))


def make(folder):
    """Twenty honest submissions, right, right in other words, with mistakes, half finished, in two halves A and B."""
    kinds = {"reference": REFERENCE}
    variants = [variant for variant in load_variants().values() if variant.only == "all"]
    mistakes = {}
    for mistake in load_mistakes().values():
        if mistake.part in WEEK["CORE"]:
            mistakes.setdefault(mistake.part, []).append(mistake)
    spread = [part[number * len(part) // 2] for number in (0, 1) for part in mistakes.values()]
    changes = [*variants[:: len(variants) // 4], *spread]
    for number in range(COUNT):
        half = "AB"[number % 2]
        if number < len(kinds):
            name, source = list(kinds.items())[number]
            shutil.copytree(source, folder / f"{half}-{name}", ignore=shutil.ignore_patterns("__pycache__"))
        else:
            change = changes[number - len(kinds)]
            materialise(REFERENCE, [change], folder / f"{half}-{change.id}")


def make_course(course, submissions):
    """A course of stock nbgrader in which all of them have handed in the week's notebook with their files."""
    source = course / "source" / WEEK_NAME
    source.mkdir(parents=True)
    shutil.copy(ROOT / "grading" / "week" / "course_template" / "source" / WEEK_NAME / NOTEBOOK, source)
    files = [f"exercises_en/{path.name}" for path in sorted(REFERENCE.glob("*.py"))]
    text = CONFIG.format(course=str(course), files=files)
    (course / "nbgrader_config.py").write_text(text, encoding="utf-8")
    nbgrader(course, "generate_assignment", WEEK_NAME)
    for submission in submissions.iterdir():
        place = course / "submitted" / submission.name / WEEK_NAME
        place.mkdir(parents=True)
        shutil.copy(course / "release" / WEEK_NAME / NOTEBOOK, place)
        shutil.copytree(submission, place / "exercises_en")
    return course


def nbgrader(course, *arguments):
    """One of its commands; a failure ends the bench."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))  # nbgrader looks for alembic there
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": path}
    environment.pop("NANOLM_IMPL", None)  # the kernel tests what lies beside the notebook
    run = subprocess.run(
        [sys.executable, "-m", "nbgrader", *arguments], cwd=course, env=environment, capture_output=True, text=True
    )
    if run.returncode:
        raise SystemExit(f"nbgrader {' '.join(arguments)} failed: {run.stderr[-1000:]}")


def stocks(course, half):
    """Wall seconds of one `nbgrader autograde` of one half."""
    start = time.perf_counter()
    nbgrader(course, "autograde", WEEK_NAME, f"--student={half}-*", "--force")
    return time.perf_counter() - start


def ours(room, jobs):
    """Wall seconds a submission of one `python -m grading run` of all, and {name: points of the core}."""
    out = room / "ours"
    shutil.rmtree(out, ignore_errors=True)
    command = [sys.executable, "-m", "grading", "run", str(room / "class"), "--out", str(out), "--jobs", str(jobs)]
    command += ["--secret", str(room / "secret"), *(["--unsandboxed"] if no_walls() else [])]
    start = time.perf_counter()
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    seconds = time.perf_counter() - start
    if run.returncode:
        raise SystemExit(f"grading run failed: {run.stderr[-1000:]}")
    with (out / "grades.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    points = {row["submission"]: sum(float(row[part]) for part in WEEK["CORE"]) for row in rows}
    return seconds / len(rows), points


def scores(course):
    """{name: points of the core} in stock's gradebook."""
    from grading.week.databases import open_gradebook

    with open_gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        return {each.student.id: each.code_score for each in gradebook.assignment_submissions(WEEK_NAME)}


def _same(stock, our):
    differ = {name: (stock.get(name), our[name]) for name in our if stock.get(name) != our[name]}
    if differ:
        raise SystemExit(f"the scores differ (stock, ours): {json.dumps(differ)}")
