"""Where student code runs: a zygote inside bubblewrap, and the workers that it forks.

Traps that are handled here: the root of the sandbox is remounted read-only, every parent directory
is made with mode 0755 (bubblewrap's own are 0700 for root), a Python under a private home is bound
path by path, and no descriptor is inherited but the two that are meant.
"""

import importlib.util
import json
import os
import re
import secrets
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from grading.grader import stopwatch
from grading.grader.cgroups import Group
from grading.grader.inside import wire
from grading.grader.lost import WorkerLost
from grading.grader.states import CRASHED, OUT_OF_MEMORY, REFUSED, TIMED_OUT, GraderError
from grading.patches import ROOT

GiB, MiB = 1 << 30, 1 << 20
INSIDE = Path(__file__).parent / "inside"
COURSE = Path("/course")  # where the sandbox finds the course's code
ROOM = Path("/room")  # where each worker mounts a folder of its own
FIRST_UID, UIDS = 2_000_000, 100_000
START_SECONDS = 120
PACKET = 1 << 16
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
LOADER = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/localtime")
NAMESPACES = ("--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")


@dataclass(frozen=True)
class Limits:
    """Seconds and bytes that student code may use. A test of the grader takes smaller ones.

    The seconds are those of the processor, so that a busy machine takes nobody's points; by the
    clock everything may take `patience` times as long.
    """

    call: float = 10.0  # seconds of one call
    part: float = 30.0  # of all calls of one part of the week
    submission: float = 120.0  # of all calls of a submission
    patience: float = 4.0
    room: int = 64 * MiB  # files in the worker's own folder
    memory: int = 6 * GiB  # of the zygote and its workers together, where there are control groups
    process: dict = field(
        default_factory=lambda: {
            "AS": 4 * GiB, "CPU": 60, "FSIZE": 16 * MiB, "NOFILE": 64, "NPROC": 64, "CORE": 0, "MEMLOCK": 0,
        }
    )  # fmt: skip


def bubblewrap():
    """The path of bubblewrap, or None where there is none."""
    return shutil.which("bwrap") if sys.platform == "linux" else None


def command(fd, sandboxed):
    """The command line of a zygote that serves on the inherited socket `fd`."""
    roots = [COURSE] if sandboxed else [INSIDE.parent, ROOT]
    start = f"import sys; sys.path[:0] = {[str(root) for root in roots]}; from inside.zygote import main; main({fd})"
    python = [sys.executable, "-I", "-B", "-c", start]
    return [*_walls(), "--", *python] if sandboxed else python


def _walls():
    """bubblewrap with all that the sandbox sees: the system, this Python, nanolm/ and inside/."""
    walls = [bubblewrap(), *NAMESPACES, "--die-with-parent", "--new-session"]
    if os.geteuid() != 0:
        walls += ["--unshare-user", "--uid", "0", "--gid", "0", "--cap-add", "CAP_SYS_ADMIN"]
    for path in map(Path, SYSTEM):
        if path.is_symlink():
            walls += ["--symlink", os.readlink(path), str(path)]
        elif path.exists():
            walls += _bind(path)
    for path in map(Path, LOADER):
        if path.exists():
            walls += _bind(path)
    walls += ["--proc", "/proc", "--dev", "/dev", "--size", str(MiB), "--tmpfs", str(ROOM)]
    if any(ROOT.is_relative_to(path) for path in SYSTEM):
        walls += ["--perms", "0755", "--tmpfs", str(ROOT)]
    for path in _python_folders():
        walls += _bind(path)
    for path in _answers_of_others():
        walls += ["--tmpfs", str(path), "--remount-ro", str(path)]
    walls += _bind(ROOT / "nanolm", COURSE / "nanolm") + _bind(INSIDE, COURSE / "inside")
    walls += ["--ro-bind", "/dev/null", str(COURSE / "nanolm" / "ledger.py")]  # it counts parameters, an exercise
    return [*walls, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/"]


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


def _environment(room):
    return {
        "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": str(room), "TMPDIR": str(room), "PYTHONHASHSEED": "0",
        "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1",
        "TORCHDYNAMO_DISABLE": "1",  # torch.compile gives the code back as it is: there is no compiler inside
    }  # fmt: skip


def _counts_by_namespace():
    """Whether this kernel counts a user's processes in each user namespace by itself."""
    return tuple(int(number) for number in re.findall(r"\d+", os.uname().release)[:2]) >= (5, 14)


class Zygote:
    """The process that forks workers. Used by one submission at a time; a context manager."""

    def __init__(self, sandboxed, limits=None, slot=0):
        self.sandboxed, self.limits, self.slot = sandboxed, limits or Limits(), slot
        self._uids = 0
        self._rooms = None if sandboxed else tempfile.mkdtemp(prefix="nanolm-rooms-")  # of its workers
        self._log = tempfile.TemporaryFile()
        self._control, theirs = socket.socketpair()
        self.group = Group.create(slot, self.limits.memory, processes=128)
        self._process = subprocess.Popen(
            command(theirs.fileno(), sandboxed),
            pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log,
            cwd="/", env=_environment(ROOM if sandboxed else self._rooms), preexec_fn=self.group.join,
        )  # fmt: skip
        theirs.close()
        self._ready = False

    def __enter__(self):
        self.get_ready()
        return self

    def __exit__(self, *_):
        self.close()

    @property
    def alive(self):
        """Whether it can still be asked."""
        return self._process.poll() is None

    def get_ready(self):
        """Wait until workers can be started: it imports torch first, which takes seconds."""
        if not self._ready and "ready" not in self._reply(START_SECONDS):
            raise GraderError("the sandbox did not start")
        self._ready = True

    def start(self, files):
        """A new Worker on the files {name: text} of a submission, before any of its code has run."""
        ours, theirs = socket.socketpair()
        self._uids = self._uids % UIDS + 1
        with theirs:
            settings = {
                "namespaces": self.sandboxed,
                "room": str(ROOM) if self.sandboxed else tempfile.mkdtemp(dir=self._rooms),
                "room_size": self.limits.room,
                "uid": FIRST_UID + self.slot * UIDS + self._uids if os.geteuid() == 0 else None,
                "limits": self.limits.process,
            }
            if os.geteuid() != 0 and not (self.sandboxed and _counts_by_namespace()):
                # NPROC would count all processes of whoever grades
                settings["limits"] = {name: value for name, value in settings["limits"].items() if name != "NPROC"}
            keeper = self._ask({"start": settings}, [theirs.fileno()])["keeper"]
        return Worker(self, ours, keeper, files)

    def stop(self, keeper, grace):
        """End a worker and all that it started; 128 + the signal that ended it, or its exit code."""
        return self._ask({"stop": keeper, "grace": grace})["status"]

    def drop(self, keeper):
        """End a worker and all that it started, without waiting for it."""
        self._send({"drop": keeper})

    def close(self):
        """End everything that runs inside."""
        self._control.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self.group.remove()
        self._log.close()
        if self._rooms:
            shutil.rmtree(self._rooms, ignore_errors=True)

    def _ask(self, request, fds=()):
        self._send(request, fds)
        return self._reply(10 + request.get("grace", 0))

    def _send(self, request, fds=()):
        try:
            socket.send_fds(self._control, [json.dumps(request).encode() + b"\n"], list(fds))
        except OSError as error:
            raise GraderError(f"the sandbox is gone: {error}") from None

    def _reply(self, seconds):
        data = b""
        if select.select([self._control], [], [], seconds)[0]:
            try:
                data = self._control.recv(PACKET)
            except OSError:
                pass
        if not data:
            raise GraderError(f"the sandbox gave no answer: {self.last_words()}")
        return json.loads(data)

    def last_words(self):
        """The last line of the zygote's log."""
        size = os.fstat(self._log.fileno()).st_size
        said = os.pread(self._log.fileno(), 2_000, max(0, size - 2_000)).decode(errors="replace").strip().splitlines()
        return wire.clean(said[-1]) if said else "it said nothing"


class Worker:
    """One process of student code, asked over its wire. The first failure ends it."""

    def __init__(self, zygote, sock, keeper, files):
        self._zygote, self._sock, self._keeper = zygote, sock, keeper
        self._oom_before = zygote.group.kills_for_memory()
        self.lost = None  # the WorkerLost that ended it
        self.used = 0.0  # seconds of the last question
        self.flood = False  # it says that its code has printed much
        stopwatch.announce(sock)
        try:
            self._pid = self._set_up(files, wire.within(START_SECONDS))
        except (wire.WireTimeout, wire.WireClosed, wire.WireError):
            raise GraderError(f"a worker could not be set up: {zygote.last_words()}") from None

    def ask(self, request, tensors, seconds):
        """The answer's header and tensors, or WorkerLost."""
        if self.lost:
            raise self.lost
        watch = stopwatch.Stopwatch(self._pid, seconds, self._zygote.limits.patience)
        try:
            return self._ask(request, tensors, watch.left)
        except wire.WireTimeout:
            self._lose(TIMED_OUT, f"no answer within {seconds:.3g} s: is there a loop that does not end?", grace=0)
        except wire.WireClosed:
            self._lose(CRASHED, None, grace=1)
        except wire.WireError as error:
            self._lose(REFUSED, f"an answer was refused: {error}", grace=0)
        finally:
            self.used = watch.used()

    def close(self):
        """End it; what it would still say is not heard."""
        if not self.lost:
            self._sock.close()
            self._zygote.drop(self._keeper)
            self.lost = WorkerLost(CRASHED, "it has ended")

    def _set_up(self, files, left):
        """Hand over the files; the number of the process that has taken them."""
        wire.send(self._sock, {"files": files}, [], left)
        wire.wait(self._sock, left)
        pid = stopwatch.sender(self._sock)
        wire.receive(self._sock, left)
        return pid

    def _ask(self, request, tensors, left):
        if not wire.is_silent(self._sock):
            raise wire.WireError(wire.UNASKED)
        ticket = secrets.token_hex(8)  # not to be guessed: an answer made in advance has none
        wire.send(self._sock, {"id": ticket, **request}, tensors, left)
        head, found = wire.receive(self._sock, left)
        if not isinstance(head, dict) or head.get("id") != ticket:
            raise wire.WireError(wire.UNASKED)
        self.flood = head.pop("flood", self.flood) is True
        if set(head) not in ({"id", "answer"}, {"id", "error"}):
            raise wire.WireError("it has other fields than agreed")
        return head, found

    def _lose(self, state, sentence, grace):
        self._sock.close()
        code = self._zygote.stop(self._keeper, grace)
        if self._zygote.group.kills_for_memory() > self._oom_before:
            state, sentence = OUT_OF_MEMORY, "your code used more memory than it may"
        elif state == CRASHED:
            sentence = f"your code ended the process {_ending(code)}"
        self.lost = WorkerLost(state, sentence)
        raise self.lost


def _ending(code):
    if code > 128:
        try:
            return f"by {signal.Signals(code - 128).name}"
        except ValueError:
            pass
    return f"with exit code {code}"
