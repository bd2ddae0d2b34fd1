"""The process that imports torch, once for all slots, and forks a zygote for each of them.

It brings no torch to this side, so it can be started before anything else is imported.
"""

import os
import shutil
import socket
import subprocess
import tempfile

from grading.grader import bubblewrap, own_user


class ForkServer:
    """`count` zygotes inside the walls: `controls` has the socket of each. A context manager."""

    def __init__(self, sandboxed, count):
        self.rooms = None if sandboxed else tempfile.mkdtemp(prefix="nanolm-rooms-")  # of the workers
        self.own_user = not sandboxed and own_user.possible()  # then each worker is another user, without a sandbox too
        course = None
        if self.own_user:
            os.chmod(self.rooms, 0o711)
            course = own_user.lay_course(self.rooms)
        self.log = tempfile.TemporaryFile()
        self.controls, theirs = zip(*(socket.socketpair() for _ in range(count)), strict=True)
        fds = [end.fileno() for end in theirs]
        self._process = subprocess.Popen(
            bubblewrap.command(fds, sandboxed, course),
            pass_fds=fds, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
            cwd="/", env=bubblewrap.environment(bubblewrap.ROOM if sandboxed else self.rooms),
        )  # fmt: skip
        for end in theirs:
            end.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def keep(self, *mine):
        """Close the controls of all zygotes but these, by their numbers: a process that holds one keeps it alive."""
        for number, control in enumerate(self.controls):
            if number not in mine:
                control.close()

    def close(self):
        """End everything that runs inside."""
        self.keep()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self.log.close()
        if self.rooms:
            shutil.rmtree(self.rooms, ignore_errors=True)
