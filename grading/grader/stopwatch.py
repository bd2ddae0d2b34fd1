"""How long student code has run: by the processor, and by the clock where it only waits."""

import socket
import struct
import sys
import time

CREDENTIALS = struct.Struct("3i")  # process, user, group


class Stopwatch:
    """The time of one call of the process `pid`, which may use `seconds`; by the clock `patience` times as many.

    On a busy machine a process gets less of the processor than the clock says, and that is not its fault.
    """

    def __init__(self, pid, seconds, patience):
        self._pid, self._seconds, self._patience = pid, seconds, patience
        self._began, self._before = time.monotonic(), cpu_seconds(pid)

    def used(self):
        """Seconds used so far."""
        by_the_clock = time.monotonic() - self._began
        if self._before is None:  # this system does not say
            return by_the_clock
        now = cpu_seconds(self._pid)
        return max(0.0 if now is None else now - self._before, by_the_clock / self._patience)

    def left(self):
        """How long an answer may be waited for before this is asked again; 0 or less where the time is over."""
        left = self._seconds - self.used()
        return max(left, 0.01) if left > 0 else left


def cpu_seconds(pid):
    """Processor seconds of a running process, all its threads together; None where they can't be known."""
    if pid is None or sys.platform != "linux":
        return None
    try:
        return time.clock_gettime(~pid << 3 | 2)  # what clock_getcpuclockid(3) gives for a process
    except OSError:
        return None


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
