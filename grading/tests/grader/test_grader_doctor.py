"""The doctor names every defence, and does not call one active that is not there."""

from pathlib import Path

import pytest
from walls import needs_walls

from grading.grader import bubblewrap, doctor
from grading.grader.limits import Limits

NAMES = ("own user", "own processes", "no /proc", "no network", "no keyrings", "no meeting", "kernel calls")
NAMES += ("course hidden", "read-only", "memory limit")


@needs_walls
def test_the_walls_stand():
    found = {line[:14].strip(): line for line in doctor.lines()}
    assert set(NAMES) < set(found)
    for name in NAMES:
        assert "active" in found[name], found[name]


def test_without_bubblewrap_it_says_so(monkeypatch, capsys):
    monkeypatch.setattr(bubblewrap, "bubblewrap", lambda: None)
    assert doctor.run(None) == 1
    said = capsys.readouterr().out
    assert "MISSING" in said and "apt-get install bubblewrap" in said


@needs_walls
def test_a_missing_wall_is_seen(monkeypatch):
    whole = bubblewrap._walls()
    place = whole.index("--remount-ro")
    without = [*whole[:place], *bubblewrap._bind(bubblewrap.ROOT / "tests"), *whole[place:]]
    monkeypatch.setattr(bubblewrap, "_walls", lambda: without)
    found = {line[:14].strip(): line for line in doctor.lines()}
    assert "active" in found["own processes"]
    assert "MISSING" in found["course hidden"]


@pytest.mark.skipif(not Path("/proc/keys").exists(), reason="this kernel keeps no keys")
def test_the_probe_finds_keyrings_where_they_are():
    outside = {}
    exec(doctor.PROBE, outside)
    assert outside["has_keys"]()


def test_the_probe_finds_what_two_could_meet_by_where_it_is():
    outside = {}
    exec(doctor.PROBE, outside)
    assert outside["has_sockets"]() and outside["meets"]()


def test_what_one_submission_can_cost_is_said():
    said = doctor.bounds(Limits(call=10, submission=120, reserve=4, patience=4))
    assert said.startswith("one submission costs at most 258 s at work or asleep, 20 minutes")
