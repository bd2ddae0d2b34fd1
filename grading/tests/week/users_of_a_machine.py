"""Several users of one machine, for the tests: each has an own uid, name and home, and none sees another's files.

bubblewrap lays another /home and another /etc/passwd over the machine's for one command, so nobody is added to it.
"""

import os
import subprocess
import sys
from pathlib import Path

from walls import NO_WALLS

from grading.grader.bubblewrap import bubblewrap
from grading.paths import ROOT

HOMES = Path("/home")
FIRST_UID = 70_001
PYTHON = tuple(dict.fromkeys((Path(sys.base_prefix), Path(sys.prefix))))
NEEDED = (*PYTHON, ROOT)


def why_not():
    """Why there can be no such users here; empty where there can."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return "only root can be several users"
    return NO_WALLS


class Machine:
    """Users by name, and what they type."""

    def __init__(self, room, *users):
        self.home, self.passwd = room / "home", room / "passwd"
        self.home.mkdir()
        self.uids = {user: FIRST_UID + number for number, user in enumerate(users)}
        lines = [f"{user}:x:{uid}:{uid}::{HOMES / user}:/bin/sh" for user, uid in self.uids.items()]
        self.passwd.write_text(Path("/etc/passwd").read_text(encoding="utf-8") + "\n".join(lines) + "\n", "utf-8")
        for user, uid in self.uids.items():
            (self.home / user).mkdir(mode=0o700)
            os.chown(self.home / user, uid, uid)

    def type(self, user, *command, place=None):
        """Run a command as a user, in the home or in another place: (exit code, all that it said)."""
        uid = self.uids[user]
        walls = [bubblewrap(), "--bind", "/", "/", "--dev-bind", "/dev", "/dev", "--proc", "/proc"]
        walls += ["--bind", self.home, HOMES, "--ro-bind", self.passwd, "/etc/passwd", *within_reach()]
        become = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
        path = f"{Path(sys.prefix) / 'bin'}:/usr/bin:/bin"
        env = {"HOME": HOMES / user, "USER": user, "PATH": path, "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}
        run = subprocess.run(
            [*map(str, walls), "--chdir", str(place or HOMES / user), "--", *become, *map(str, command)],
            env={name: str(value) for name, value in env.items()}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, encoding="utf-8", errors="replace",
        )  # fmt: skip
        return run.returncode, run.stdout

    def write(self, user, path, data):
        """A file of a user's, below the home."""
        place = self.home / user / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
        for made in (place, *place.relative_to(self.home).parents):
            made = self.home / made
            if made != self.home:
                os.chown(made, self.uids[user], self.uids[user])


def within_reach(only_python=False):
    """This Python and this repository, where they lie in a home, ours perhaps, that other users can't enter.

    `only_python` is for a root in which there is nothing yet but the system.
    """
    walls, opened = [], {HOMES}
    for folder in PYTHON if only_python else NEEDED:
        above = [*reversed(folder.parents), folder]
        closed = next((path for path in above if not path.stat().st_mode & 0o001), None)
        if closed is not None and closed not in opened:
            opened.add(closed)
            walls += ["--perms", "0755", "--tmpfs", closed]
        inside = next((path for path in opened if folder.is_relative_to(path)), None)
        if inside is None and not only_python:
            continue
        for parent in above[1:-1]:
            if inside is None or (parent.is_relative_to(inside) and parent != inside):
                walls += ["--perms", "0755", "--dir", parent]
        walls += ["--ro-bind", folder, folder]
    return walls
