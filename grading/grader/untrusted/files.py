"""The bytes of a file that somebody handed in: a plain file, no link, no pipe, no second name of one of ours."""

import os
import stat

from grading.grader.untrusted import Unfit

_ours = set()  # (device, inode) of files that no submission may hand in under another name


def keep_out(*paths):
    """Never read these files, nor those below these folders, as somebody's work: a hard link leads to them too."""
    for path in paths:
        if path.is_dir():
            keep_out(*path.iterdir())
        elif path.is_file():
            found = path.stat()
            _ours.add((found.st_dev, found.st_ino))


def open_file(path):
    """An open stream of a plain file; FileNotFoundError where there is none, Unfit where it is anything else."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe must not keep us waiting
    try:
        fd = os.open(path, flags)
    except FileNotFoundError:
        raise
    except (OSError, ValueError):
        if os.path.islink(path):
            raise Unfit("is a link: hand in the file itself") from None
        raise Unfit("can't be read: hand in a plain file") from None
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode):
        os.close(fd)
        raise Unfit("is not a plain file: hand in the file itself")
    if found.st_nlink > 1 and (found.st_dev, found.st_ino) in _ours:
        os.close(fd)
        raise Unfit("is a link to a file of the course: hand in a file of your own")
    return os.fdopen(fd, "rb")


def read_file(path, limit, otherwise="hand in your code only"):
    """All bytes of a file of at most `limit` bytes; `otherwise` says what to do where it has more."""
    with open_file(path) as stream:
        try:
            data = stream.read(limit + 1)
        except OSError:
            raise Unfit("can't be read: hand in a plain file") from None
    if len(data) > limit:
        raise Unfit(f"is larger than {limit:,} bytes: {otherwise}")
    return data
