"""A control group for each zygote where the machine lets us make one: a limit for all processes together."""

import os
from dataclasses import dataclass
from pathlib import Path

TOP = Path("/sys/fs/cgroup")
PREFIX = "nanolm-"  # then the process that made it, then its slot


@dataclass(frozen=True)
class Group:
    """The folders of one group, in each hierarchy that can be used; none where cgroups can't."""

    folders: dict  # "memory", "pids" (version 1) or "unified" (version 2) -> folder

    @classmethod
    def create(cls, slot, memory, processes):
        """Make this process's group of one slot with its limits, wherever that is allowed."""
        name, folders = f"{PREFIX}{os.getpid()}-{slot}", {}
        for kind, parent in _parents().items():
            _remove_left_over(parent)
            folder = parent / name
            try:
                folder.mkdir()
                _limit(kind, folder, memory, processes)
                folders[kind] = folder
            except OSError:
                _remove(folder)
        return cls(folders)

    def take_in(self, pid):
        """Put a process into the group, with all that it will start. A hierarchy that refuses it is used no more."""
        for kind, folder in list(self.folders.items()):
            try:
                (folder / "cgroup.procs").write_text(str(pid), encoding="ascii")
            except OSError:
                _remove(self.folders.pop(kind))

    def kills_for_memory(self):
        """How many processes the kernel has ended here because memory ran out."""
        for kind, file in (("memory", "memory.oom_control"), ("unified", "memory.events")):
            if kind in self.folders:
                lines = (self.folders[kind] / file).read_text(encoding="ascii").splitlines()
                return sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))
        return 0

    def remove(self):
        """Forget the group; its processes have ended."""
        for folder in self.folders.values():
            _remove(folder)


def _limit(kind, folder, memory, processes):
    files = {
        "memory": {"memory.limit_in_bytes": memory},
        "pids": {"pids.max": processes},
        "unified": {"memory.max": memory, "pids.max": processes},
    }
    for file, value in files[kind].items():
        (folder / file).write_text(str(value), encoding="ascii")


def _parents():
    """The folders in which this process may try to make a group."""
    found = {}
    try:
        lines = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return found
    for line in lines:
        number, kinds, path = line.split(":", 2)
        for kind in kinds.split(","):
            if kind in ("memory", "pids"):
                found[kind] = TOP / kind / path.lstrip("/")
        if number == "0" and (TOP / "cgroup.controllers").exists():
            found["unified"] = TOP / path.lstrip("/")
    return {kind: folder for kind, folder in found.items() if os.access(folder, os.W_OK)}


def _remove_left_over(parent):
    """Groups whose maker was killed before it could remove them."""
    for folder in parent.glob(f"{PREFIX}*"):
        maker = folder.name.removeprefix(PREFIX).split("-")[0]
        if not Path("/proc", maker).exists():
            _remove(folder)


def _remove(folder):
    try:
        folder.rmdir()
    except OSError:
        pass  # never made, or a process of it is still ending
