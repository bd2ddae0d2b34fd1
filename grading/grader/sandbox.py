"""Where student code runs: a zygote inside the walls, and the workers that it forks."""

import contextlib
import json
import os
import re
import secrets
import select
import signal
import socket
import tempfile

from grading.grader import stopwatch
from grading.grader.bubblewrap import ROOM
from grading.grader.cgroups import Group
from grading.grader.fork_server import ForkServer
from grading.grader.inside import wire
from grading.grader.limits import Limits
from grading.grader.lost_worker import WorkerLost
from grading.grader.own_user import uids
from grading.grader.states import CRASHED, OUT_OF_MEMORY, REFUSED, TIMED_OUT, GraderError

START_SECONDS, END_SECONDS = 120, 5
PACKET = 1 << 16


def _counts_by_namespace():
    """Whether this kernel counts a user's processes in each user namespace by itself."""
    return tuple(int(number) for number in re.findall(r"\d+", os.uname().release)[:2]) >= (5, 14)


class Zygote:
    """A process that forks workers, of a fork server. Used by one submission at a time; a context manager."""

    def __init__(self, sandboxed, limits=None, slot=0, fork_server=None):
        """The zygote number `slot` of a fork server; without one it has a fork server of its own."""
        self.sandboxed, self.limits, self.slot = sandboxed, limits or Limits(), slot
        self._own = None if fork_server else ForkServer(sandboxed, 1)
        self._nursery = fork_server or self._own
        self._control = self._nursery.controls[slot if fork_server else 0]
        self._pid = None
        self.group = Group.create(slot, self.limits.memory, processes=256)
        stopwatch.announce(self._control)
        self._ready = False

    def __enter__(self):
        self.get_ready()
        return self

    def __exit__(self, *_):
        self.close()

    @property
    def alive(self):
        """Whether it can still be asked."""
        try:
            return bool(self._control.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
        except BlockingIOError:
            return True
        except OSError:
            return False

    def get_ready(self):
        """Wait until workers can be started: torch is imported first, which takes seconds."""
        if self._ready:
            return
        if select.select([self._control], [], [], START_SECONDS)[0]:
            self._pid = stopwatch.sender(self._control)
        if "ready" not in self._reply(0):
            raise GraderError("the sandbox did not start")
        self.group.take_in(self._pid)
        if self._pid is not None:
            with contextlib.suppress(OSError):  # a matter of speed only
                os.sched_setaffinity(self._pid, os.sched_getaffinity(0))
        self._ready = True

    def start(self, files, place=()):
        """A new Worker on the files {path: text} of a submission, before any of its code has run.

        They lie in folders of the names in `place`, as in what was handed in.
        """
        ours, theirs = socket.socketpair()
        with theirs:
            settings = {
                "namespaces": self.sandboxed,
                "room": str(ROOM) if self.sandboxed else tempfile.mkdtemp(dir=self._nursery.rooms),
                "room_size": self.limits.room,
                "own_user": self._nursery.own_user,
                "uids": uids(self.slot) if os.geteuid() == 0 else None,
                "limits": self.limits.process,
            }
            if os.geteuid() != 0 and not (self.sandboxed and _counts_by_namespace()):
                # NPROC would count all processes of whoever grades
                settings["limits"] = {name: value for name, value in settings["limits"].items() if name != "NPROC"}
            keeper = self._ask({"start": settings}, [theirs.fileno()])["keeper"]
        return Worker(self, ours, keeper, files, place)

    def stop(self, keeper, grace):
        """End a worker and all that it started; 128 + the signal that ended it, or its exit code."""
        return self._ask({"stop": keeper, "grace": grace})["status"]

    def drop(self, keeper):
        """End a worker and all that it started, without waiting for it."""
        self._send({"drop": keeper})

    def close(self):
        """End it and everything that it has started."""
        try:
            self._control.shutdown(socket.SHUT_WR)
            gone = select.select([self._control], [], [], END_SECONDS)[0]  # it has nothing to say but that it has gone
        except OSError:
            gone = True
        if not gone and self._pid is not None:
            os.kill(self._pid, signal.SIGKILL)
        self._control.close()
        if self._own:
            self._own.close()
        self.group.remove()

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
        log = self._nursery.log.fileno()
        last = os.pread(log, 2_000, max(0, os.fstat(log).st_size - 2_000))
        said = last.decode(errors="replace").strip().splitlines()
        return wire.clean(said[-1]) if said else "it said nothing"


class Worker:
    """One process of student code, asked over its wire. The first failure ends it."""

    def __init__(self, zygote, sock, keeper, files, place):
        self._zygote, self._sock, self._keeper = zygote, sock, keeper
        self._oom_before = zygote.group.kills_for_memory()
        self.lost = None  # the WorkerLost that ended it
        self.used = 0.0  # seconds of the last question
        self.flood = False  # it says that its code has printed much
        stopwatch.announce(sock)
        try:
            self._pid = self._set_up(files, place, wire.within(START_SECONDS))
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

    def _set_up(self, files, place, left):
        """Hand over the files; the number of the process that has taken them."""
        texts = [text.encode("utf-8") for text in files.values()]
        head = {"files": [[path, len(text)] for path, text in zip(files, texts, strict=True)], "place": list(place)}
        wire.send(self._sock, head, list(map(wire.tensor_of_bytes, texts)), left)
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
