"""nanolm: the course library. Students import it and never edit it."""

import importlib


def __getattr__(name):
    """`from nanolm import check`, for a notebook; a file that imports nanolm waits neither for it nor for pytest."""
    if name == "check":
        return importlib.import_module("nanolm.student.check").check
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
