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
SINCE_424 = (425, 428, 429, 430, 431, 432, 433, 442)  # io_uring, the new mount calls: one number on every machine
REFUSED = {  # machine -> its AUDIT_ARCH; its numbers of what no exercise needs; of clone and of socket
    # add_key, request_key, keyctl, unshare, setns, mount, umount2, pivot_root, chroot, ptrace, process_vm_readv and
    # _writev, bpf, perf_event_open, userfaultfd
    "x86_64": (
        0xC000_003E, (248, 249, 250, 272, 308, 165, 166, 155, 161, 101, 310, 311, 321, 298, 323, *SINCE_424), 56, 41
    ),
    "aarch64": (
        0xC000_00B7, (217, 218, 219, 97, 268, 40, 39, 41, 51, 117, 270, 271, 280, 241, 282, *SINCE_424), 220, 198
    ),
}  # fmt: skip
CLONE3, CLONE_NEWUSER, AF_VSOCK = 435, 0x1000_0000, 40

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
    """An own room of limited size, and nothing to read in /proc."""
    _mount(None, "/", None, MS_REC | MS_PRIVATE)
    _mount("tmpfs", room, "tmpfs", MS_NOSUID | MS_NODEV, f"size={size},nr_inodes=2000,mode=1777")
    _mount("tmpfs", "/proc", "tmpfs", MS_NOSUID | MS_NODEV | MS_RDONLY, "size=4k,mode=555")


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
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        limit({"AS": pages * resource.getpagesize() + room})


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

    Keyrings belong to a uid, and sockets to the machine below this one to nobody: no namespace here hides them.
    A filter can't see what clone3 is asked for, so that one is said to be missing and clone is used. Calls of another
    machine's numbering (32 bits, x32) are refused with the others.
    """
    load, equal, at_least, has_bits, give = 0x20, 0x15, 0x35, 0x45, 0x06  # of classic BPF, see seccomp(2)
    number, architecture, first_argument = 0, 4, 16  # where they stand in what the kernel hands over
    allow, refuse, missing = 0x7FFF_0000, 0x0005_0001, 0x0005_0026  # go on; EPERM; ENOSYS
    machine, refused, clone, socket = REFUSED[platform.machine()]
    steps = [  # operation, where to go on if so, if not, and what with; a word names a step, None is the next one
        (load, None, None, architecture), (equal, None, "refuse", machine),
        (load, None, None, number), (at_least, "refuse", None, 0x4000_0000),
        *((equal, "refuse", None, call) for call in refused),
        (equal, "clone", None, clone), (equal, "socket", None, socket), (equal, "missing", None, CLONE3),
        (give, None, None, allow),
        "clone", (load, None, None, first_argument), (has_bits, "refuse", None, CLONE_NEWUSER),
        (give, None, None, allow),
        "socket", (load, None, None, first_argument), (equal, "refuse", None, AF_VSOCK),
        (give, None, None, allow),
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
