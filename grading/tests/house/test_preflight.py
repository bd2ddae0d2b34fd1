"""What a command needs is asked before its first step, and what is missing is a sentence with the way to get it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from walls import SANDBOXED

from grading import preflight
from grading.__main__ import COMMANDS, main
from grading.grader import bubblewrap
from grading.paths import ROOT

GIB = 1 << 30


def arguments(folder, **more):
    return SimpleNamespace(out=folder / "out", course=folder, unsandboxed=False, try_it=False, **more)


def test_what_is_asked_is_asked_of_commands_that_exist():
    assert set(preflight.NEEDS) - {"autograde"} <= set(COMMANDS)


def test_a_missing_package_is_named_before_the_command_is_imported(monkeypatch, capsys):
    monkeypatch.setattr(preflight, "_installed", lambda name: name != "nbgrader")
    monkeypatch.delitem(sys.modules, COMMANDS["report"], raising=False)
    assert main(["report", "--course", "nowhere"]) == 1
    assert COMMANDS["report"] not in sys.modules
    said = capsys.readouterr().err
    assert said.startswith("report can't begin: nbgrader is not installed in ")
    assert said.endswith(": python3 set_up.py grading.\n")


def test_every_part_of_the_course_is_installed_here():
    assert [sentence for part in ("student", "notebooks", "grading") if (sentence := preflight.packages(part))] == []


def test_no_memory_and_no_disk_are_a_sentence_each(monkeypatch, tmp_path):
    monkeypatch.setattr(preflight, "free_memory", lambda: 0.3)
    monkeypatch.setattr(preflight.shutil, "disk_usage", lambda path: SimpleNamespace(free=50_000_000))
    said = preflight.missing("run", arguments(tmp_path, secret=None))
    memory = f"grading takes {preflight.GRADING_MEMORY:g} GB of memory, and 0.3 GB are free: end other programs"
    disk = f"{tmp_path} has 0.1 GB left, and 0.2 GB are needed: make room"
    assert [memory, disk] == [one for one in said if "GB" in one]
    assert "and 4 GB are needed" in preflight.trial(SimpleNamespace(try_it=True))


def test_where_nothing_is_missing_nothing_is_said(tmp_path):
    free = SimpleNamespace(out=tmp_path / "a" / "b", course=tmp_path, unsandboxed=True, try_it=True)
    assert preflight.missing("run", free) == [] and preflight.missing("release", free) == []


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_place_that_cant_be_written_into_is_named(tmp_path):
    tmp_path.chmod(0o555)
    assert preflight.disk(0, lambda args: tmp_path / "out")(None).startswith(f"{tmp_path} can't be written into")


def test_a_postgresql_server_that_is_away_is_said_before_anything_is_done(tmp_path):
    config = 'c = get_config()\nc.CourseDirectory.db_url = "postgresql://grader:hidden@127.0.0.1:1/gradebook"\n'
    (tmp_path / "nbgrader_config.py").write_text(config, encoding="utf-8")
    for command in ("collect", "export", "report", "autograde"):
        said = preflight.missing(command, arguments(tmp_path))
        assert any("does not answer" in one and "hidden" not in one for one in said), (command, said)


def test_a_folder_that_is_no_course_is_said(tmp_path):
    assert preflight.missing("export", arguments(tmp_path)) == [
        f"{tmp_path} is no course folder: there is no nbgrader_config.py in it."
    ]


@pytest.mark.parametrize(("system", "name"), [("darwin", "macOS"), ("win32", "Windows"), ("sunos5", "sunos5")])
def test_another_system_has_no_walls(monkeypatch, system, name):
    monkeypatch.setattr(bubblewrap.sys, "platform", system)
    assert f"this is {name}: grade on Linux" in bubblewrap.no_walls()
    assert bubblewrap.bubblewrap() is None


def test_walls_are_not_asked_for_where_nobody_wants_them(monkeypatch, tmp_path):
    monkeypatch.setattr(bubblewrap, "no_walls", lambda: "none here")
    wanted, unwanted = arguments(tmp_path), arguments(tmp_path)
    unwanted.unsandboxed = True
    assert "none here" in preflight.missing("run", wanted)
    assert "none here" not in preflight.missing("run", unwanted)


def test_the_systems_bubblewrap_comes_first_and_the_packages_second(monkeypatch):
    monkeypatch.setattr(bubblewrap.sys, "platform", "linux")
    monkeypatch.setattr(bubblewrap, "_packaged", lambda: "/packaged/bwrap")
    monkeypatch.setattr(bubblewrap.shutil, "which", lambda name: f"/usr/bin/{name}")
    assert bubblewrap.bubblewrap() == "/usr/bin/bwrap"
    monkeypatch.setattr(bubblewrap.shutil, "which", lambda name: None)
    assert bubblewrap.bubblewrap() == "/packaged/bwrap"


@pytest.mark.skipif(bubblewrap._packaged() is None, reason="the package has no program for this machine")
def test_the_packages_bubblewrap_builds_the_walls(monkeypatch):
    monkeypatch.setattr(bubblewrap.shutil, "which", lambda name: None)
    if said := bubblewrap.no_walls():
        pytest.skip(said)
    assert f"0.11.0, the package {bubblewrap.PACKAGE}: " in bubblewrap.which_bubblewrap()


@pytest.mark.skipif(bubblewrap.bubblewrap() is None, reason="there is no bubblewrap here")
def test_what_forbids_namespaces_is_named_with_the_command_that_allows_them(monkeypatch):
    monkeypatch.setattr(bubblewrap, "_refused", lambda: "bwrap: No permissions. See <https://example.org>.")
    monkeypatch.setattr(bubblewrap, "FORBIDDING", (("kernel.ostype", "Linux", "other"),))
    expected = "bubblewrap can't build the walls around student code here (No permissions): "
    assert bubblewrap.no_walls() == f"{expected}sudo sysctl -w kernel.ostype=other"


@pytest.mark.skipif(shutil.which("unshare") is None or not SANDBOXED, reason="needs Linux's unshare, and namespaces")
def test_where_namespaces_are_forbidden_nothing_is_graded(tmp_path):
    """In a user namespace that maps nobody no further one can be made."""
    unshare = ["unshare", "--user"]
    if subprocess.run([*unshare, "true"], capture_output=True).returncode:
        pytest.skip("this machine forbids namespaces itself")
    grading = [sys.executable, "-m", "grading", "run", "class", "--out", tmp_path, "--secret", __file__]
    run = subprocess.run(
        [*unshare, *map(str, grading)], cwd=ROOT, capture_output=True, encoding="utf-8", timeout=120
    )  # fmt: skip
    assert run.returncode == 1, run.stderr
    assert "run can't begin: bubblewrap can't build the walls around student code here (" in run.stderr
    assert "Traceback" not in run.stderr and not list(Path(tmp_path).iterdir())


def test_a_containers_limit_of_memory_counts(monkeypatch):
    texts = {
        "/proc/meminfo": "MemTotal: 9 kB\nMemAvailable: 6000000 kB\n",
        "/sys/fs/cgroup/memory.max": f"{2 * GIB}\n",
        "/sys/fs/cgroup/memory.current": f"{GIB}\n",
    }
    monkeypatch.setattr(Path, "read_text", lambda path, **_: texts[path.as_posix()])
    assert preflight.free_memory() == pytest.approx(GIB / 1e9)
    texts["/sys/fs/cgroup/memory.max"] = "max\n"
    assert preflight.free_memory() == pytest.approx(6.144)
