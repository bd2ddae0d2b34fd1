"""What the zygote does to a new worker before student code runs: namespaces, limits, another uid."""

import ctypes
import os
import platform
import resource
import signal
import struct
import sys
from pathlib import Path

CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWPID = 0x0002_0000, 0x0800_0000, 0x2000_0000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_REC, MS_PRIVATE = 1, 2, 4, 0x4000, 0x4_0000
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS = 1, 4, 38
PR_CAPBSET_DROP, PR_SET_SECUREBITS, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 24, 28, 47, 4
SECURE_ALL = 0b1010_1111  # keep nothing for uid 0, locked
LAST_CAPABILITY = 63
MADV_COLLAPSE, HUGE = 25, 2 << 20
CLONE_NUMBERS = {"x86_64": 56, "aarch64": 220}
PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2
# What no exercise needs of the kernel, by its number on x86_64 and on aarch64 (None where there is none).
REFUSED = {
    # much to attack, and ways out of the walls
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219), "unshare": (272, 97), "setns": (308, 268),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "ptrace": (101, 117),
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "bpf": (321, 280), "perf_event_open": (298, 241),
    "userfaultfd": (323, 282), "io_uring_setup": (425, 425), "open_tree": (428, 428), "move_mount": (429, 429),
    "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433),
    "mount_setattr": (442, 442), "open_by_handle_at": (304, 265), "pidfd_open": (434, 434), "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    # what two workers might tell each other by: sockets, System V and POSIX objects, watched and locked files, the
    # kernel's own log and counts, pages that are in memory
    "socket": (41, 198), "socketpair": (53, 199), "bind": (49, 200), "listen": (50, 201), "accept": (43, 202),
    "connect": (42, 203), "accept4": (288, 242), "shmget": (29, 194), "semget": (64, 190), "msgget": (68, 186),
    "mq_open": (240, 180), "mq_unlink": (241, 181), "inotify_init": (253, None), "inotify_init1": (294, 26),
    "inotify_add_watch": (254, 27), "fanotify_init": (300, 262), "flock": (73, 32), "syslog": (103, 116),
    "sysinfo": (99, 179), "mincore": (27, 232), "cachestat": (451, 451), "quotactl": (179, 60),
    "quotactl_fd": (443, 443), "futex_waitv": (449, 449), "futex_wake": (454, 454), "futex_wait": (455, 455),
    "futex_requeue": (456, 456),
    # a turn that comes later or elsewhere than the others'
    "setpriority": (141, 140), "sched_setparam": (142, 118), "sched_setscheduler": (144, 119),
    "sched_setattr": (314, 274), "sched_setaffinity": (203, 122), "ioprio_set": (251, 30),
}  # fmt: skip
MACHINES = {  # machine -> its AUDIT_ARCH, which of the numbers are its own, and those of clone, fcntl and futex
    "x86_64": (0xC000_003E, 0, 56, 72, 202),
    "aarch64": (0xC000_00B7, 1, 220, 25, 98),
}
# fcntl: F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC, F_GETPIPE_SZ, seals. Locks can be seen by others.
FCNTL = (0, 1, 2, 3, 4, 1030, 1032, 1033, 1034)
# futex: what is the process's own, and waiting, as pthread_join does. Waking others reaches whoever shares a file.
FUTEX_PRIVATE, FUTEX_WAITS = 128, (0, 9, 256, 265)
CLONE3, CLONE_NEWUSER = 435, 0x1000_0000

LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def clone_into_namespaces():
    """A fork whose child is process 1 of its own pid namespace, with its own mounts and System V objects.

    Python has no call for it before 3.12, and unshare would reach only the zygote's first child.
    """
    number = CLONE_NUMBERS[platform.machine()]
    pid = LIBC.syscall(number, CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | signal.SIGCHLD, 0, 0, 0, 0)
    if pid < 0:
        raise OSError(ctypes.get_errno(), "clone")
    return pid


def private_mounts(room, size):
    """An own room of limited size, and nothing to read in /proc; no terminals, which all workers would share."""
    _mount(None, "/", None, MS_REC | MS_PRIVATE)
    _mount("tmpfs", room, "tmpfs", MS_NOSUID | MS_NODEV, f"size={size},nr_inodes=2000,mode=1777")
    for folder in ("/proc", "/dev/pts"):
        if Path(folder).is_dir():
            _mount("tmpfs", folder, "tmpfs", MS_NOSUID | MS_NODEV | MS_RDONLY, "size=4k,mode=555")


def limit(limits):
    """The floor of every defence: rlimits by name, as in {"AS": 4 << 30}."""
    for name, value in limits.items():
        kind = getattr(resource, f"RLIMIT_{name}", None)
        if kind is not None:
            hard = resource.getrlimit(kind)[1]
            value = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(kind, (value, value))


def limit_growth(room):
    """Let this process take `room` bytes more than it has."""
    if sys.platform == "linux":
        limit({"AS": address_space() + room})


def address_space():
    """The bytes of addresses that this process has taken by now; torch's build for a GPU alone takes 3 GiB."""
    if sys.platform != "linux":
        return 0
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()


def drop_rights(uid):
    """Become `uid`, or keep the one uid that there is, with no capability and no way to get one back."""
    for capability in range(LAST_CAPABILITY + 1):
        LIBC.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    LIBC.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    else:
        LIBC.prctl(PR_SET_SECUREBITS, SECURE_ALL, 0, 0, 0)
    _no_capabilities()
    _prctl(PR_SET_NO_NEW_PRIVS, 1)
    _prctl(PR_SET_DUMPABLE, 0)


def refuse_calls():
    """Refuse what no exercise needs of the kernel: what outlives a worker or reaches beyond it, and much to attack.

    Many of these no namespace hides. A filter can't see what clone3 is asked for, so that one is said to be missing
    and clone is used. Calls of another machine's numbering (32 bits, x32) are refused with the others.
    """
    load, equal, at_least, has_bits, give = 0x20, 0x15, 0x35, 0x45, 0x06  # of classic BPF, see seccomp(2)
    number, architecture, first_argument, second_argument = 0, 4, 16, 24  # where they stand in what the kernel gives
    allow, refuse, missing = 0x7FFF_0000, 0x0005_0001, 0x0005_0026  # go on; EPERM; ENOSYS
    machine, column, clone, fcntl, futex = MACHINES[platform.machine()]
    refused = [numbers[column] for numbers in REFUSED.values() if numbers[column] is not None]
    steps = [  # operation, where to go on if so, if not, and what with; a word names a step, None is the next one
        (load, None, None, architecture), (equal, None, "refuse", machine),
        (load, None, None, number), (at_least, "refuse", None, 0x4000_0000),
        (equal, "futex", None, futex), (equal, "fcntl", None, fcntl),
        *((equal, "refuse", None, call) for call in refused),
        (equal, "clone", None, clone), (equal, "missing", None, CLONE3),
        (give, None, None, allow),
        "clone", (load, None, None, first_argument), (has_bits, "refuse", None, CLONE_NEWUSER),
        (give, None, None, allow),
        "fcntl", (load, None, None, second_argument), *((equal, "allow", None, command) for command in FCNTL),
        (give, None, None, refuse),
        "futex", (load, None, None, second_argument), (has_bits, "allow", None, FUTEX_PRIVATE),
        *((equal, "allow", None, operation) for operation in FUTEX_WAITS),
        (give, None, None, refuse),
        "allow", (give, None, None, allow),
        "missing", (give, None, None, missing),
        "refuse", (give, None, None, refuse),
    ]  # fmt: skip
    places, lines = {}, []
    for step in steps:
        if isinstance(step, str):
            places[step] = len(lines)
        else:
            lines.append(step)

    def jump(word, line):
        return 0 if word is None else places[word] - line - 1

    code = b"".join(
        struct.pack("=HBBI", operation, jump(then, line), jump(otherwise, line), value)
        for line, (operation, then, otherwise, value) in enumerate(lines)
    )
    buffer = ctypes.create_string_buffer(code, len(code))
    program = ctypes.create_string_buffer(struct.pack("@HP", len(lines), ctypes.addressof(buffer)))
    _prctl(PR_SET_NO_NEW_PRIVS, 1)
    _prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.addressof(program))


def die_with_parent():
    """Have the kernel end this process when its parent ends."""
    if LIBC is not None:
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def be_the_first_without_memory():
    """Where memory runs out, the kernel ends this process and its children before the zygote."""
    try:
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    except OSError:
        pass  # no Linux, or no right to it: then only the test that runs is in danger, and it is tried again


def collapse_pages():
    """Make this process's memory of huge pages where the kernel can: a fork then costs a quarter."""
    if LIBC is None:
        return
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        area, rights, _, _, inode, *_ = line.split()
        first, last = (int(address, 16) for address in area.split("-"))
        first, last = -(-first // HUGE) * HUGE, last // HUGE * HUGE
        if rights == "rw-p" and inode == "0" and first < last:
            LIBC.madvise(ctypes.c_void_p(first), ctypes.c_size_t(last - first), MADV_COLLAPSE)  # a refusal harms nobody


def _no_capabilities():
    header = (ctypes.c_uint32 * 2)(0x2008_0522, 0)  # version 3, this process
    if LIBC.capset(header, (ctypes.c_uint32 * 6)()):
        raise OSError(ctypes.get_errno(), "capset")


def _prctl(option, value, more=0):
    if LIBC.prctl(option, ctypes.c_ulong(value), ctypes.c_ulong(more), 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


def _mount(source, target, kind, flags, options=None):
    def text(value):
        return None if value is None else value.encode()

    if LIBC.mount(text(source), target.encode(), text(kind), ctypes.c_ulong(flags), text(options)):
        raise OSError(ctypes.get_errno(), f"mount {target}")
