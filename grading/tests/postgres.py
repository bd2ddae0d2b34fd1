"""A PostgreSQL server of the tests' own: in a folder of its own, on a free port, and gone at the end."""

import os
import secrets
import shutil
import socket
import subprocess
from contextlib import contextmanager
from pathlib import Path

from grading.preflight import postgresql_program

USER = "grader"


def _unprivileged():
    """The command that runs another one as nobody, for root; empty for everybody else."""
    if os.getuid() != 0:
        return []
    setpriv = shutil.which("setpriv")
    return setpriv and [setpriv, "--reuid=65534", "--regid=65534", "--clear-groups"]


class Server:
    """A server that can be stopped and started again."""

    def __init__(self, folder):
        self.folder, self.password = Path(folder), secrets.token_hex(8)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.data = self.folder / "data"
        secret = self.folder / "password"
        secret.write_text(self.password, encoding="utf-8")
        if os.getuid() == 0:
            for path in (self.folder, secret):
                os.chown(path, 65534, 65534)
        self._run(
            "initdb", "--pgdata", self.data, "--username", USER, "--pwfile", secret, "--auth=scram-sha-256",
            "--encoding=UTF8", "--no-sync",
        )  # fmt: skip

    def start(self):
        options = f"-p {self.port} -h 127.0.0.1 -k '' -c fsync=off"
        self._run("pg_ctl", "--pgdata", self.data, "--wait", "--log", self.folder / "log", "-o", options, "start")

    def stop(self):
        self._run("pg_ctl", "--pgdata", self.data, "--wait", "--mode=immediate", "stop")

    def url(self, name="postgres", password=None):
        """The address as an instructor writes it: no driver in it."""
        return f"postgresql://{USER}:{password or self.password}@127.0.0.1:{self.port}/{name}"

    def _run(self, name, *arguments):
        command = [*_unprivileged(), postgresql_program(name), *map(str, arguments)]
        # A folder that the other user can read, and no pipe that the server would keep open.
        with (self.folder / "said").open("w+", encoding="utf-8") as said:
            done = subprocess.run(command, cwd="/", stdout=said, stderr=said, timeout=600)
            said.seek(0)
            assert done.returncode == 0, said.read()


@contextmanager
def server(folder):
    """A running server."""
    running = Server(folder)
    running.start()
    try:
        yield running
    finally:
        running.stop()
