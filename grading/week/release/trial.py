"""The bundle on an empty machine: unpacked, installed as its README says, checked before and after solving.

Nothing of this repository is on the path: the environment is new, and only the README's own commands are run.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path

from grading.paths import EXERCISES, REFERENCE
from grading.week.release.bundle import NAME
from grading.week.release.errors import ReleaseError
from nanolm.impl import CONTRACT

CHECK = "python -m pytest tests"
STATES_OF_A_STUB = {"not started", "waiting"}


@dataclass(frozen=True)
class Trial:
    """What a student sees: pytest's exit code, and {state: how many tests}."""

    code: int
    states: dict


def set_up_commands(readme):
    """The README's commands for macOS and Linux, in order."""
    block = re.search(r"macOS and Linux:\n\n((?:    .+\n)+)", readme)
    if block is None:
        raise ReleaseError("the students' README has no set-up under 'macOS and Linux:'.")
    return [line.strip() for line in block[1].splitlines()]


def try_out(archive, room, installed_here=False, say=print):
    """Unpack and install the bundle in the empty folder `room`, check it as it is and solved: two Trials.

    `installed_here` takes the packages of the running environment, without its own projects, in place of pip.
    ReleaseError where the bundle does not do what it must.
    """
    with zipfile.ZipFile(archive) as unpacked:
        unpacked.extractall(room)
    folder = room / NAME
    readme = (folder / "README.md").read_text(encoding="utf-8")
    commands = set_up_commands(readme)
    if installed_here:
        _borrowed_environment(folder / ".venv")
        commands = [line for line in commands if line.startswith("source ")]
    if f"    {CHECK}\n" not in readme:
        raise ReleaseError(f"the students' README does not say {CHECK!r}.")
    activate = next(line for line in commands if line.startswith("source "))
    for count, command in enumerate(commands, 1):
        say(f"  [{count}/{len(commands)}] {command}")
        _run(folder, command if command.startswith("python3") else f"{activate} && {command}")
    _expect_nothing_else(folder, activate)
    say(f"  {CHECK}: the stubs")
    before = _trial(folder, activate)
    if before.code != 1 or not before.states or set(before.states) - STATES_OF_A_STUB:
        raise ReleaseError(f"the unpacked bundle should have nothing started, but pytest says {before.states}.")
    for module in CONTRACT:
        shutil.copy(REFERENCE / f"{module}.py", folder / EXERCISES.name / f"{module}.py")
    say(f"  {CHECK}: the reference's files in their place")
    after = _trial(folder, activate)
    if after.code != 0 or set(after.states) != {"passed"}:
        raise ReleaseError(f"the solved bundle should be all green, but pytest says {after.states}.")
    return before, after


def _borrowed_environment(folder):
    """A virtual environment that sees this one's packages: a path in a .pth file runs no other .pth, so no editable
    install of this repository comes along."""
    venv.create(folder, symlinks=os.name != "nt", with_pip=False)
    scheme = sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)})
    places = dict.fromkeys(sysconfig.get_path(name) for name in ("purelib", "platlib"))
    Path(scheme, "borrowed.pth").write_text("\n".join(places), encoding="utf-8")


def _expect_nothing_else(folder, activate):
    """nanolm comes from the bundle, and there is no grading and no reference."""
    question = (
        "import importlib.util as u, json; "
        "print(json.dumps({n: u.find_spec(n) and u.find_spec(n).origin for n in ('nanolm', 'grading', 'reference')}))"
    )
    found = json.loads(_run(folder, f'{activate} && python -c "{question}"').stdout.splitlines()[-1])
    inside = found["nanolm"] and Path(found["nanolm"]).is_relative_to(folder.resolve())
    if not inside or found["grading"] or found["reference"]:
        raise ReleaseError(f"the trial is not alone: it finds {found}.")


def _trial(folder, activate):
    report = folder.parent / "report.json"
    report.unlink(missing_ok=True)
    run = _run(folder, f"{activate} && {CHECK} --report '{report}'", codes=(0, 1))
    states = {}
    for test in json.loads(report.read_text(encoding="utf-8"))["tests"]:
        states[test["outcome"]] = states.get(test["outcome"], 0) + 1
    return Trial(run.returncode, states)


def _run(folder, command, codes=(0,)):
    """A command line as a student types it in bash, with nothing of this process's Python in its environment."""
    ours = {"VIRTUAL_ENV", "NANOLM_IMPL"}
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("PYTHON") and name not in ours
    }
    here = str(Path(sys.executable).parent)
    places = [place for place in environment["PATH"].split(os.pathsep) if place != here]
    environment |= {"PATH": os.pathsep.join(places), "PYTHONNOUSERSITE": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    run = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, encoding="utf-8",
        errors="replace",
    )  # fmt: skip
    if run.returncode not in codes:
        last = (run.stderr.strip() or run.stdout.strip() or "no output").splitlines()[-1]
        raise ReleaseError(f"the student's command {command!r} failed with exit code {run.returncode}: {last}")
    return run
