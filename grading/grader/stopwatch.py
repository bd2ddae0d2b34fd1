"""How long student code has run: by the processor, and by the clock where it sleeps."""

import os
import socket
import struct
import sys
import time
from pathlib import Path

LOOK = 0.05  # seconds: a right answer takes a few milliseconds
TICK = os.sysconf("SC_CLK_TCK")
MOST_PROCESSES = 200  # that are looked at; more than a worker may have
CREDENTIALS = struct.Struct("3i")  # process, user, group


class Stopwatch:
    """The time of one call of the process `pid`, which may use `seconds`; by the clock `patience` times as many.

    On a busy machine a process gets less of the processor than the clock says, and that is not its fault: what it
    waits for its turn does not count. What it sleeps counts, once it has not answered for `LOOK` seconds, and from
    then on what the processes use that it has started.
    """

    def __init__(self, pid, seconds, patience):
        self._pid, self._seconds, self._patience = pid, seconds, patience
        self._began, self._before = time.monotonic(), cpu_seconds(pid)
        self._most = self._children = 0.0
        self._looked = None  # the clock, the turns waited for and its children's seconds, when it was looked at first

    def used(self):
        """Seconds used so far. Of a process that has ended, what was known while it ran."""
        self._most = max(self._most, self._seen())
        return self._most

    def _seen(self):
        clock = time.monotonic()
        by_the_clock = clock - self._began
        if self._before is None:  # this system does not say
            return by_the_clock
        now = cpu_seconds(self._pid)
        used = max(0.0 if now is None else now - self._before, by_the_clock / self._patience)
        if self._looked:
            self._children = max(self._children, children_seconds(self._pid) - self._looked[2])
            used += self._children
        turns = waiting_seconds(self._pid) if self._looked else None
        if turns is None:
            return used
        return max(used, clock - self._looked[0] - (turns - self._looked[1]))

    def left(self):
        """How long an answer may be waited for before this is asked again; 0 or less where the time is over."""
        left = self._seconds - self.used()
        if self._looked is None and left > 0:
            clock = time.monotonic()
            if clock - self._began < LOOK:
                return min(left, LOOK)
            turns = waiting_seconds(self._pid)
            self._looked = None if turns is None else (clock, turns, children_seconds(self._pid))
        return max(left, 0.01) if left > 0 else left


def cpu_seconds(pid):
    """Processor seconds of a running process, all its threads together; None where they can't be known."""
    if pid is None or sys.platform != "linux":
        return None
    try:
        return time.clock_gettime(~pid << 3 | 2)  # what clock_getcpuclockid(3) gives for a process
    except OSError:
        return None


def waiting_seconds(pid):
    """How long the threads of a running process have waited for a processor; None where that can't be known."""
    if pid is None:
        return None
    try:
        tasks = list(Path("/proc", str(pid), "task").iterdir())
        return sum(int((task / "schedstat").read_text(encoding="ascii").split()[1]) for task in tasks) / 1e9
    except OSError:  # it has ended, or this system has no such files
        return None


def children_seconds(pid):
    """Processor seconds of all that a worker has started, ended or not; 0 where that can't be known."""
    if pid is None:
        return 0.0
    try:
        keeper = int(_stat(pid)[1])  # its parent, which takes in whom it leaves behind
        total, found = sum(_seconds(pid)[2:]), [keeper]
        for process in found:
            tasks = Path("/proc", str(process), "task").iterdir()
            words = " ".join((task / "children").read_text(encoding="ascii") for task in tasks).split()
            found += list(map(int, words))[: MOST_PROCESSES - len(found)]
    except OSError:  # it has ended, or this system has no such files
        return 0.0
    for process in set(found) - {pid}:
        try:
            total += sum(_seconds(process))
        except OSError:
            pass  # it has ended, and counts as its parent's
    return total


def _stat(pid):
    """The fields of /proc/PID/stat after the process's name, which may hold anything."""
    return Path("/proc", str(pid), "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()


def _seconds(pid):
    """Seconds of a process: its own and the system's for it, and both of its ended children."""
    return [int(field) / TICK for field in _stat(pid)[11:15]]


def announce(sock):
    """Have the kernel say with each message who has sent it."""
    if sys.platform == "linux":
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)


def sender(sock):
    """The process that has sent what can be read next, by its number on this side; None where that is not known."""
    if sys.platform != "linux":
        return None
    found = sock.recvmsg(1, socket.CMSG_SPACE(CREDENTIALS.size), socket.MSG_PEEK)[1]
    pids = [CREDENTIALS.unpack(data)[0] for _, kind, data in found if kind == socket.SCM_CREDENTIALS]
    return pids[0] if pids and pids[0] > 0 else None
