"""nbgrader's exchange, the whole ring, by its own command lines: from the release to the feedback in a student's hands.

As an instructor and two students of one machine, each with an own uid and a closed home, and as one user who is both.
"""

import getpass
import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

pytest.importorskip("nbgrader")

from users_of_a_machine import HOMES, Machine, why_not  # noqa: E402

from grading.authoring.stubs import generate  # noqa: E402
from grading.paths import REFERENCE, ROOT  # noqa: E402
from grading.proof.attacks.attack import ARGUMENTS  # noqa: E402

pytestmark = pytest.mark.proof

pytestmark = pytest.mark.proof
COURSE, EXCHANGE = HOMES / "teacher" / "course", HOMES / "exchange"
STUDENTS_SETTINGS = ("--course=nanolm", f"--Exchange.root={EXCHANGE}")
# The exam is a handful of tests: 5 points for the norm, 3 for RoPE. Who is a second late loses a tenth.
SETTINGS = f"""
c.WeekAutograde.tests = {list(ARGUMENTS)!r}
c.WeekAutograde.sandboxed = False
c.LatePolicy.grace_minutes = 0
"""
RIGHT = {name: (REFERENCE / f"{name}.py").read_bytes() for name in ("modules", "rope")}
NOBODYS = "carl"  # hands in elsewhere: there is no such user on the machine


class Ring:
    """The machine, and what was said by the way."""

    def __init__(self, room):
        self.machine = Machine(room, "teacher", "ada", "bob")
        self.inside = room / "home"
        exchange = self.inside / "exchange"
        exchange.mkdir()
        exchange.chmod(0o1777)
        self.said = {}

    def teacher(self, *command, fine=(0,)):
        return self._type("teacher", ("nbgrader", *command), COURSE, fine)

    def student(self, user, *command, fine=(0,)):
        return self._type(user, ("nbgrader", *command, *STUDENTS_SETTINGS), None, fine)

    def grading(self, *command):
        return self._type("teacher", ("python", "-m", "grading", *command), ROOT, (0,))

    def _type(self, user, command, place, fine):
        code, said = self.machine.type(user, *command, place=place)
        assert code in fine and "Traceback" not in said, f"{user}: {command}: exit code {code}\n{said}"
        return said

    def solve(self, user, *modules):
        for module in modules:
            self.machine.write(user, f"week06/exercises_en/{module}.py", RIGHT[module])

    def due_now(self, when=None):
        due = when or datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S.%f UTC")
        self.teacher("db", "assignment", "add", "week06", f"--duedate={due}")

    def feedback(self, user):
        """{when it was handed in: the page} of what a student has fetched, oldest first."""
        pages = sorted((self.inside / user / "week06" / "feedback").glob("*/*.html"))
        return {page.parent.name: page.read_text(encoding="utf-8") for page in pages}

    def released(self):
        return sorted((self.inside / "exchange" / "nanolm" / "feedback").iterdir())


@pytest.fixture(scope="module")
def ring(tmp_path_factory):
    """The ring up to the first feedback: ada is on time with RoPE, bob late with all, carl did not use the exchange."""
    if why_not():
        pytest.skip(why_not())
    ring = Ring(tmp_path_factory.mktemp("ring"))
    ring.grading("course", COURSE, "--exchange", EXCHANGE)
    with (ring.inside / "teacher/course/nbgrader_config.py").open("a", encoding="utf-8") as config:
        config.write(SETTINGS)
    ring.teacher("generate_assignment", "week06")
    ring.teacher("release_assignment", "week06")
    ring.said["list"] = ring.student("ada", "list")
    for user in ("ada", "bob"):
        ring.student(user, "fetch_assignment", "week06")
    ring.fetched = {path.name: path.read_text("utf-8") for path in (ring.inside / "ada/week06/exercises_en").iterdir()}
    ring.solve("ada", "rope")
    ring.student("ada", "submit", "week06")
    ring.due_now()
    ring.solve("bob", "rope", "modules")
    (ring.inside / "bob/week06/week06.ipynb").rename(ring.inside / "bob/week06/my week.ipynb")
    ring.said["submit"] = ring.student("bob", "submit", "week06")
    ring.machine.write("teacher", f"canvas/{NOBODYS}/exercises_en/rope.py", RIGHT["rope"])
    ring.grading("collect", HOMES / "teacher/canvas", "--course", COURSE)
    ring.said["collect"] = ring.teacher("collect", "week06")
    ring.teacher("autograde", "week06")
    ring.teacher("generate_feedback", "week06")
    ring.said["release_feedback"] = ring.teacher("release_feedback", "week06", fine=(1,))
    ring.said["before"] = ring.student("ada", "list", "--cached")
    for user in ("ada", "bob"):
        ring.student(user, "fetch_feedback", "week06")
    ring.said["after"] = ring.student("ada", "list", "--cached")
    return ring


def marks(page):
    """What each part earned, by its name, as a feedback page says it."""
    return {part: float(score) for part, score in re.findall(r">(\w+)</a> ([\d.]+) of \d", page)}


def test_a_student_sees_fetches_and_gets_the_stubs(ring):
    assert "nanolm week06" in ring.said["list"]
    assert ring.fetched == generate()


def test_each_student_gets_the_feedback_on_their_own_work(ring):
    (ada,), (bob,) = ring.feedback("ada").values(), ring.feedback("bob").values()
    assert marks(ada)["rope"] == marks(bob)["rope"] == 3
    assert marks(ada)["rmsnorm"] == 0 and marks(bob)["rmsnorm"] == 5


def test_the_list_says_when_feedback_is_there_and_when_it_was_fetched(ring):
    assert "(feedback ready to be fetched)" in ring.said["before"]
    assert "(feedback already fetched)" in ring.said["after"]


def test_a_student_who_renamed_the_notebook_finds_the_feedback_too(ring):
    assert "my week.ipynb: EXTRA" in ring.said["submit"]
    assert [page.name for page in (ring.inside / "bob/week06/feedback").glob("*/*")] == ["my week.html"]


def test_one_who_did_not_use_the_exchange_keeps_nobody_from_the_feedback(ring):
    said = ring.said["release_feedback"]
    assert f"{NOBODYS} did not hand in through the exchange" in said and "1 of 3 pages" in said
    assert len(ring.released()) == 2


def test_no_student_can_read_another_ones_feedback_or_work(ring):
    others = [f"{EXCHANGE}/nanolm/feedback", f"{EXCHANGE}/nanolm/inbound", COURSE, COURSE / "feedback", HOMES / "bob"]
    for folder in others:
        code, said = ring.machine.type("ada", "ls", folder)
        assert code != 0 and "ermission denied" in said, folder
    before = ring.feedback("ada")
    ring.student("ada", "fetch_feedback", "week06", "--student=bob")
    assert ring.feedback("ada") == before
    code, said = ring.machine.type("ada", "mv", f"{EXCHANGE}/nanolm", f"{EXCHANGE}/mine")
    assert code != 0, "a student can put another course in the place of this one"


def test_late_work_is_told_so_and_a_second_feedback_replaces_the_first(ring):
    (when, late), = ring.feedback("bob").items()
    assert "late" in late.lower()
    ring.due_now("2099-01-01 00:00:00 UTC")
    ring.teacher("generate_feedback", "week06", "--force", "--student=bob")
    ring.teacher("release_feedback", "week06", "--student=bob")
    assert "(feedback ready to be fetched)" in ring.student("bob", "list", "--cached")
    ring.student("bob", "fetch_feedback", "week06")
    (again, now), = ring.feedback("bob").items()
    assert again == when and now != late and "late" not in now.lower()
    assert len(ring.released()) == 2


def test_a_second_submission_has_a_feedback_of_its_own(ring):
    ring.due_now("2099-01-01 00:00:00 UTC")
    (first, page), = ring.feedback("ada").items()
    ring.solve("ada", "modules")
    ring.student("ada", "submit", "week06")
    assert "use --update" in ring.teacher("collect", "week06")
    ring.teacher("release_feedback", "week06", "--student=ada")  # nothing new is there yet: the first stays
    assert "Updating submission: ada" in ring.teacher("collect", "week06", "--update")
    ring.teacher("autograde", "week06")
    ring.teacher("generate_feedback", "week06")
    ring.teacher("release_feedback", "week06", "--student=ada")
    ring.student("ada", "fetch_feedback", "week06")
    pages = ring.feedback("ada")
    assert len(pages) == 2 and pages[first] == page and max(pages) != first
    assert marks(page)["rmsnorm"] == 0 and marks(pages[max(pages)])["rmsnorm"] == 5


def test_the_ring_closes_for_one_user_who_is_instructor_and_student(tmp_path):
    env = {name: value for name, value in os.environ.items() if not name.startswith(("JUPYTER", "NANOLM"))}
    env |= {"HOME": str(tmp_path), "PATH": f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}"}

    def type(place, *command):
        run = subprocess.run(command, cwd=place, env=env, capture_output=True, text=True, encoding="utf-8")
        assert run.returncode == 0 and "Traceback" not in run.stderr, f"{command}\n{run.stdout}{run.stderr}"
        return run.stderr

    course, mine = tmp_path / "course", tmp_path / "mine"
    mine.mkdir()
    type(ROOT, sys.executable, "-m", "grading", "course", str(course))
    with (course / "nbgrader_config.py").open("a", encoding="utf-8") as config:
        config.write(SETTINGS)
    settings = ("--course=nanolm", f"--Exchange.root={course / 'exchange'}")
    type(course, "nbgrader", "generate_assignment", "week06")
    type(course, "nbgrader", "release_assignment", "week06")
    assert "nanolm week06" in type(mine, "nbgrader", "list", *settings)
    type(mine, "nbgrader", "fetch_assignment", "week06", *settings)
    type(mine, "nbgrader", "submit", "week06", *settings)
    for command in ("collect", "autograde", "generate_feedback", "release_feedback"):
        type(course, "nbgrader", command, "week06")
    type(mine, "nbgrader", "fetch_feedback", "week06", *settings)
    (page,) = (mine / "week06" / "feedback").glob("*/week06.html")
    assert (course / "feedback" / getpass.getuser() / "week06" / "week06.html").read_bytes() == page.read_bytes()
