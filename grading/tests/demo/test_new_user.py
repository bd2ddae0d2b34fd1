"""The first minutes of somebody new: an ordinary user, the system's own Python, nothing else that the week wants."""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from grading.paths import ROOT

pytestmark = pytest.mark.proof

PYTHON = Path("/usr/bin/python3")
TOOLS = ("useradd", "userdel", "runuser", "make")
NOT_THERE = ("bwrap", "chromedriver", "chromium", "initdb", "git")  # on the new user's PATH
NOT_COPIED = (".git", ".venv", "build", "__pycache__", "*.egg-info", ".*_cache")


def why_not():
    """Why nobody new can be tried here; "" where somebody can."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return "only root can add a user"
    lacks = [tool for tool in TOOLS if shutil.which(tool) is None]
    if lacks:
        return f"there is no {', '.join(lacks)}"
    bounds = re.search(r'requires-python = ">=([\d.]+)', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))[1]
    fits = f"import ensurepip, sys; sys.exit(sys.version_info[:3] < {tuple(map(int, bounds.split('.')))})"
    if not PYTHON.exists() or subprocess.run([PYTHON, "-c", fits], capture_output=True).returncode:
        return f"{PYTHON} is missing, too old, or can't make environments"
    return ""


@pytest.fixture
def new_user():
    """(what runs a command as the user, a copy of the project in a home that is otherwise read-only)."""
    if why := why_not():
        pytest.skip(why)
    name, home = f"nanolm{os.getpid()}", Path(tempfile.mkdtemp(prefix="nanolm-new-user-"))
    week = home / "the week (ü) #1, 50 %"
    subprocess.run(["useradd", "--no-create-home", "--home-dir", home, "--shell", "/bin/sh", name], check=True)
    try:
        shutil.copytree(ROOT, week, ignore=shutil.ignore_patterns(*NOT_COPIED))
        (home / "bin").mkdir()
        for place in map(Path, ("/bin", "/usr/bin")):
            for tool in place.iterdir():
                link = home / "bin" / tool.name
                if tool.name not in NOT_THERE and not link.is_symlink():
                    link.symlink_to(tool)
        subprocess.run(["chown", "-R", f"{name}:", week], check=True)
        home.chmod(0o555)
        alone = ["runuser", "-u", name, "--", "env", "-i", f"PATH={home / 'bin'}", f"HOME={home}", "LANG=C.UTF-8"]
        yield alone, week
    finally:
        subprocess.run(["userdel", name], check=True)
        shutil.rmtree(home)


def test_a_new_users_first_command_ends_in_its_table(new_user):
    alone, week = new_user
    command = [*map(str, alone), "make", "demo", f"PYTHON={PYTHON}"]
    run = subprocess.run(command, cwd=week, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8")
    if run.returncode and "onnection" in run.stdout:
        pytest.skip(f"no package can be had here: {run.stdout.splitlines()[-1]}")
    assert run.returncode == 0, run.stdout
    assert "Every grade that is known beforehand is as expected." in run.stdout
    assert "The environment .venv is ready, after" in run.stdout
    assert (week / "build" / "demo" / "report.html").is_file()
