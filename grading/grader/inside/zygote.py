"""Processes with torch imported and one thread, each of which forks a worker whenever it is asked to.

They run no student code. A zygote is asked over a socket, a line of JSON each: `start` comes with the worker's
end of its own wire, `stop` ends a worker with all that it has started and is answered by how it
ended, `drop` does the same at once and is not answered.
"""

import gc
import itertools
import json
import os
import platform
import signal
import socket
import sys
import time
import traceback

from . import confine

PACKET = 1 << 16
ROOM_SECONDS = 5


def main(fds):
    """Import torch, and fork a zygote for each of the inherited sockets; end when all of them have ended."""
    confine.die_with_parent()
    controls = [socket.socket(fileno=fd) for fd in fds]
    _warm_up()
    while controls:
        control = controls.pop()
        if os.fork() == 0:
            for other in controls:
                other.close()
            _or_exit(97, _zygote, control)
        control.close()
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return


def _zygote(control):
    """Serve on the socket until the other side closes it."""
    confine.die_with_parent()
    control.send(json.dumps({"ready": os.getpid()}).encode())
    keepers, started = {}, itertools.count()
    while True:
        data, fds, _, _ = socket.recv_fds(control, PACKET, 1)
        if not data:
            break
        for line in data.splitlines():  # only the last may wait for an answer, and only that one brings a descriptor
            _serve(json.loads(line), fds, control, keepers, started)
    for keeper in keepers:
        _stop(keeper, 0)


def _serve(request, fds, control, keepers, started):
    """One request. `keepers` are those that have not been waited for, with the signal that ends them at once."""
    if "start" in request:
        settings = request["start"]
        first, count = settings.pop("uids") or (None, None)
        settings["uid"] = None if first is None else first + next(started) % count  # of no worker before
        keeper = _start_when_there_is_room(settings, fds[0], control, keepers)
        os.close(fds[0])
        keepers[keeper] = signal.SIGKILL if settings["namespaces"] else signal.SIGTERM
        control.send(json.dumps({"keeper": keeper}).encode())
    elif "stop" in request and request["stop"] in keepers:
        del keepers[request["stop"]]
        control.send(json.dumps({"status": _stop(request["stop"], request["grace"])}).encode())
    elif "drop" in request and request["drop"] in keepers:
        os.kill(request["drop"], keepers[request["drop"]])
    for keeper in list(keepers):
        if os.waitpid(keeper, os.WNOHANG)[0]:
            del keepers[keeper]


def _warm_up():
    """What every worker needs, imported and used once; nothing parallel may run before a fork."""
    import torch

    torch.set_num_threads(1)
    from . import preload

    preload.up()
    gc.collect()
    gc.freeze()  # a collection in a worker would copy every page that it looks at
    confine.collapse_pages()


def _start_when_there_is_room(settings, wire_fd, control, keepers):
    """A new keeper; where the worker before it has left no process free, as soon as its processes have ended."""
    end = time.monotonic() + ROOM_SECONDS
    while True:
        try:
            return _start(settings, wire_fd, control)
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.02)
            for keeper in list(keepers):
                if os.waitpid(keeper, os.WNOHANG)[0]:
                    del keepers[keeper]


def _start(settings, wire_fd, control):
    """Fork a keeper, which forks the worker, waits for it, and ends with all that the worker started."""
    if settings["namespaces"]:
        keeper = confine.clone_into_namespaces()
    else:
        keeper = os.fork()
    if keeper == 0:
        _or_exit(99, _keep, settings, wire_fd, control)
    return keeper


def _or_exit(code, work, *args):
    """A forked process must never go on with its parent's work: it ends here, with its reason in the log."""
    try:
        work(*args)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _keep(settings, wire_fd, control):
    """Be process 1 of the worker's namespace. The exit code says how the worker ended: 128 + signal, or its code."""
    control.close()
    confine.die_with_parent()
    confine.be_the_first_without_memory()
    settings["limits"]["AS"] += confine.address_space()  # what torch has taken is not the student's
    if settings["namespaces"]:
        confine.private_mounts(settings["room"], settings["room_size"])
    child = os.fork()
    if child == 0:
        _or_exit(98, _become_worker, settings, wire_fd)
    os.close(wire_fd)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGKILL))
    while True:
        pid, status = os.waitpid(-1, 0)  # orphans end here too
        if pid == child:
            break
    if not settings["namespaces"]:
        _kill_group(child)
    if settings["own_user"]:
        _kill_all_of(settings["uid"])
    code = os.waitstatus_to_exitcode(status)
    os._exit(128 - code if code < 0 else code)


def _become_worker(settings, wire_fd):
    os.setsid()
    sock = socket.socket(fileno=wire_fd)
    os.closerange(3, wire_fd)
    os.closerange(wire_fd + 1, 4096)
    from . import worker

    room = worker.room_of(settings["room"])
    confine.limit(settings["limits"])
    if settings["own_user"]:
        os.chown(room, settings["uid"], settings["uid"])
    if settings["namespaces"] or settings["own_user"]:
        confine.drop_rights(settings["uid"])
    if not settings["namespaces"]:
        confine.die_with_parent()  # which a new user makes the kernel forget
    if sys.platform == "linux" and (settings["namespaces"] or platform.machine() in confine.MACHINES):
        confine.refuse_calls()
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nothing, fd)  # what student code prints goes nowhere
    os.close(nothing)
    worker.serve(sock, room)
    os._exit(0)


def _stop(keeper, grace):
    """End a worker, after `grace` seconds if it does not end by itself, and give its keeper's exit code."""
    for wait, number in ((grace, signal.SIGTERM), (2.0, signal.SIGKILL)):
        end = time.monotonic() + wait
        while True:
            pid, status = os.waitpid(keeper, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
            if time.monotonic() >= end:
                break
            time.sleep(0.002)
        os.kill(keeper, number)
    return os.waitstatus_to_exitcode(os.waitpid(keeper, 0)[1])


def _kill_all_of(uid):
    """End every process of a user, also one that has left its group: only the user can ask the kernel for that."""
    child = os.fork()
    if child == 0:
        _or_exit(0, _be_killed_with, uid)
    os.waitpid(child, 0)


def _be_killed_with(uid):
    os.setresuid(uid, uid, uid)
    try:
        os.kill(-1, signal.SIGKILL)
    except ProcessLookupError:
        pass  # nobody was left


def _kill_group(leader):
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        pass
