"""The doctor names every defence, and does not call one active that is not there."""

import errno
import socket
from pathlib import Path

import pytest

from grading.grader import doctor, walls

NAMES = ("own user", "own processes", "no /proc", "no network", "no keyrings", "kernel calls")
NAMES += ("course hidden", "read-only", "memory limit")


@pytest.mark.skipif(walls.bubblewrap() is None, reason="there is no bubblewrap here")
def test_the_walls_stand():
    found = {line[:14].strip(): line for line in doctor.lines()}
    assert set(NAMES) < set(found)
    for name in NAMES:
        assert "active" in found[name], found[name]


def test_without_bubblewrap_it_says_so(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "bubblewrap", lambda: None)
    assert doctor.run(None) == 1
    assert "MISSING" in capsys.readouterr().out


@pytest.mark.skipif(walls.bubblewrap() is None, reason="there is no bubblewrap here")
def test_a_missing_wall_is_seen(monkeypatch):
    without = tuple(wall for wall in walls.NAMESPACES if wall != "--unshare-net")
    monkeypatch.setattr(walls, "NAMESPACES", without)
    found = {line[:14].strip(): line for line in doctor.lines()}
    assert "active" in found["own processes"]
    assert "MISSING" in found["no network"] or not has_a_way_out()


@pytest.mark.skipif(not Path("/proc/keys").exists(), reason="this kernel keeps no keys")
def test_the_probe_finds_keyrings_where_they_are():
    outside = {}
    exec(doctor.PROBE, outside)
    assert outside["has_keys"]()


def has_a_way_out():
    """Whether this machine has a network at all."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        return probe.connect_ex(("192.0.2.1", 9)) != errno.ENETUNREACH
