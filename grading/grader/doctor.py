"""`python -m grading doctor`: which defences are active on this machine, a line each, found out by trying them."""

import os
from pathlib import Path

from grading.grader import sandbox
from grading.grader.batch import GROWTH, SLACK
from grading.grader.bubblewrap import no_walls, which_bubblewrap
from grading.grader.inside import wire
from grading.grader.limits import GiB
from grading.grader.lost_worker import WorkerLost
from grading.grader.own_user import LEAST
from grading.grader.states import GraderError
from grading.grader.untrusted.archives import ENTRIES, MB, SECONDS, SIZE
from grading.paths import ROOT
from nanolm.source import BYTES_LIMIT, FILES_LIMIT

HELP = "say which defences are active on this machine"

# A submission that looks at its own surroundings and says what it sees.
PROBE = """
import ctypes, fcntl, os, platform, resource, socket
KEYCTL = {"x86_64": 250, "aarch64": 219}
def does(work):
    try:
        work()
        return True
    except OSError:
        return False
def has_keys():
    number = KEYCTL.get(platform.machine())
    return number is None or ctypes.CDLL(None).syscall(number, 0, -3, 1) >= 0  # makes a session keyring
def has_sockets():
    return does(socket.socketpair) or any(does(lambda: socket.socket(family).close()) for family in range(1, 46))
def meets():
    libc = ctypes.CDLL(None)
    with open(os.__file__) as shared:
        locks = does(lambda: fcntl.flock(shared, fcntl.LOCK_SH)) or does(lambda: fcntl.lockf(shared, fcntl.LOCK_SH))
    watches, queues = libc.inotify_init1(0) >= 0, libc.mq_open(b"/probe", 64, 384, 0) >= 0
    return locks or watches or queues or libc.shmget(0, 4096, 0o1600) >= 0 or os.path.exists("/dev/pts/ptmx")
def leaves():
    return ctypes.CDLL(None).unshare(0x10000000) == 0  # CLONE_NEWUSER
def sees(path):
    try:
        os.listdir(path)
        return True
    except OSError:
        return False
def writes(path):
    try:
        with open(os.path.join(path, "probe"), "w"):
            return True
    except OSError:
        return False
def rope_frequencies(course, tests):
    return (os.getuid(), os.getppid(), has_sockets(), sees(course), sees(tests), writes("/usr"), writes("/dev/shm"),
            resource.getrlimit(resource.RLIMIT_AS)[0], resource.getrlimit(resource.RLIMIT_NPROC)[0], sees("/proc/1"),
            has_keys(), leaves(), meets())
"""


def add_arguments(parser):
    parser.add_argument("--course", type=Path, metavar="COURSE", help="also say whether its gradebook can be used")


def run(args):
    """Print the lines; 1 where there is no sandbox, or no gradebook where one is asked for."""
    failed = 0
    if args and args.course:
        active, detail = gradebook(args.course)
        print(_line("gradebook", active, detail))
        failed = 0 if active else 1
    if missing := no_walls():
        print(_line("sandbox", False, missing))
        return 1
    try:
        print(*lines(), sep="\n")
    except (GraderError, WorkerLost) as error:
        print(f"sandbox       MISSING  bubblewrap does not start here: {error}")
        return 1
    return failed


def gradebook(course):
    """Whether a course's gradebook can be read, and where it is or why it can't."""
    from grading.week.course_folder import Course, CourseError
    from grading.week.databases import DatabaseError, open_gradebook, shown

    try:
        found = Course(course)
        with open_gradebook(found.db_url, found.course_id) as book:
            return True, f"{shown(found.db_url)}, {len(book.students)} students"
    except (CourseError, DatabaseError) as error:
        return False, str(error)


def lines(sandboxed=True, limits=None):
    """One line for each defence, as a probe where student code runs finds it."""
    with sandbox.Zygote(sandboxed, limits) as zygote:
        worker = zygote.start({"rope.py": PROBE})
        tensors = []
        question = {"do": "function", "name": "rope_frequencies", "kwargs": wire.encode({}, tensors)}
        question["args"] = wire.encode((str(ROOT / "grading"), str(ROOT / "tests")), tensors)
        head, found = worker.ask(question, tensors, 10)
        if "answer" not in head:
            raise GraderError(f"the probe failed: {head['error']['message']}")
        seen = wire.decode(head["answer"], found)["output"]
        worker.close()
        groups = sorted(zygote.group.folders)
    uid, parent, sockets, course, tests, usr, shared, memory, processes, proc, keys, way_out, meets = seen
    limits = zygote.limits
    if sandboxed:
        yield _line("bubblewrap", True, which_bubblewrap())
    yield _line("own user", uid >= LEAST, f"student code runs as uid {uid}")
    yield _line("own processes", parent == 1, "its own pid namespace; no other process can be seen or signalled")
    yield _line("no /proc", not proc, "nothing to read there")
    interface = ", and no interface in its network namespace" if sandboxed else ""
    yield _line("no network", not sockets, f"no socket of any kind (seccomp){interface}")
    yield _line("no meeting", not meets, "no locks, watches, shared memory, queues or terminals that two could share")
    yield _line("no keyrings", not keys, "the kernel's key store, which no namespace hides, is refused (seccomp)")
    yield _line("kernel calls", not way_out, "no namespace, no mount, nothing that reaches another process (seccomp)")
    yield _line("course hidden", not course and not tests, "no grading/, reference/, tests/, no other submission")
    yield _line("read-only", not usr and not shared, f"one private folder of {limits.room >> 20} MiB can be written")
    yield _line("memory limit", 0 < memory, f"{memory / GiB:.1f} GiB a process, torch's own with it (rlimit)")
    whose = "its user" if os.geteuid() == 0 else "all submissions that run at once, as they share a user without root"
    yield _line("process limit", 0 < processes <= limits.process["NPROC"], f"{processes} for {whose} (rlimit)")
    yield _line("memory cgroup", "memory" in groups or "unified" in groups, "a limit for all processes together")
    yield _line("pids cgroup", "pids" in groups or "unified" in groups, "a limit for all processes together")
    yield _line("time limit", True, f"{limits.call:g} s a call, {limits.part:g} a part, {limits.submission:g} in all")
    yield _line("in all", True, bounds(limits))
    yield _line("intake", True, f"{SIZE // MB} MB unpacked, {ENTRIES:,} files, {SECONDS} s of the processor a student")


def bounds(limits):
    """What one submission can cost, whatever it does."""
    from machinery import parts

    count = len(parts.PARTS + parts.ADVICE)
    longest = limits.longest(count) + SLACK
    files = f"{BYTES_LIMIT >> 20} MiB in {FILES_LIMIT} files is read of it"
    return (
        f"one submission costs at most {limits.most(count):g} s at work or asleep, {longest / 60:.0f} minutes on a "
        f"busy machine; {limits.memory >> 30} GiB, and {GROWTH >> 30} GiB for its answers; {files}"
    )


def _line(name, active, detail):
    return f"{name:<14}{'active ' if active else 'MISSING'}  {detail}"
