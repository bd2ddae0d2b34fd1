"""Every hostile submission ends in its state, steals no point, and leaves the rest of the grading alone."""

import json
import os
import sqlite3
import time

import psutil
import pytest
from walls import NO_WALLS

from grading.grader.own_user import FIRST
from grading.paths import ROOT
from grading.proof.attacks.listed import LISTED, OF_OTHER_TESTS
from grading.proof.attacks.play import MODES, faults, gradebook, play, played
from grading.proof.attacks.table import ATTACKS

pytestmark = pytest.mark.proof


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder of the grader's, with a gradebook that an attack may look for."""
    folder = tmp_path_factory.mktemp("grading")
    gradebook(folder)
    return folder


@pytest.fixture(scope="module")
def results(place):
    """mode -> {attack: result}, each mode graded once, when it is first asked for."""
    found = {}

    def of(mode):
        if mode == "sandboxed" and NO_WALLS:
            pytest.skip(NO_WALLS)
        if mode not in found:
            found[mode] = None  # where the grader fails it fails once, not for each attack
            found[mode] = dict(play(played(mode), mode, place))
        return found[mode] or pytest.fail("the attacks could not be graded")

    return of


@pytest.mark.parametrize(("mode", "name"), [(mode, name) for mode in MODES for name in played(mode)])
def test_an_attack_ends_in_its_state_and_steals_nothing(results, mode, name):
    assert faults(ATTACKS[name], results(mode)[name]) == []


@pytest.mark.parametrize("mode", MODES)
def test_a_flood_of_output_is_said_and_other_output_is_not(results, mode):
    said = {name for name, result in results(mode).items() if any("output was cut" in n for n in result["notes"])}
    assert said == {"prints_100_megabytes", "prints_600k_lines"}


@pytest.mark.parametrize("mode", MODES)
def test_what_students_read_is_plain_text_without_private_numbers(results, mode):
    for name, result in results(mode).items():
        text = json.dumps(result, ensure_ascii=False)
        assert text.isascii() and "\x1b" not in text and "\\u001b" not in text, name
        assert not {"expected", "got", "measured", "fingerprint"} & {key for test in result["tests"] for key in test}


def test_the_gradebook_and_the_folders_are_as_they_were(results, place):
    results("sandboxed")
    with sqlite3.connect(place / "gradebook.db") as base:
        assert base.execute("select points from grade").fetchall() == [(1,)]
    assert not list(place.rglob("left_behind"))
    assert not os.path.exists("/dev/shm/left_behind") and not os.path.exists("/tmp/left_behind")


def test_nothing_goes_on_running(results):
    results("sandboxed")
    deadline = time.monotonic() + 120  # patience with a busy machine: what has ended ends the wait
    while (left := workers_alive()) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert left == []


def workers_alive():
    """Processes of student code, which have uids that nobody else has; not those of another grader beside this one."""
    return [process.pid for process in psutil.process_iter() if is_student_code(process) and not is_elsewhere(process)]


def is_student_code(process):
    try:
        return process.uids().real >= FIRST
    except psutil.Error:  # it has ended
        return False


def is_elsewhere(process):
    """Whether a Python of another run stands above it. Above what is left behind there is none."""
    try:
        above = [parent for parent in process.parents() if not is_student_code(parent) and "python" in parent.name()]
    except psutil.Error:
        return False
    mine = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    return bool(above) and os.getpid() not in {parent.pid for parent in above} and above[0].pid not in mine


def test_every_row_of_the_list_is_played_and_no_other():
    played = {attack.row for attack in ATTACKS.values() if not attack.row.startswith(("own", "control"))}
    assert played | set(OF_OTHER_TESTS) == set(LISTED) and len(LISTED) == len(set(LISTED))
    assert sum(attack.row == "own" for attack in ATTACKS.values()) >= 20
    for file, test in OF_OTHER_TESTS.values():
        assert f"def {test}(" in (ROOT / "grading" / "tests" / file).read_text(encoding="utf-8"), test
