"""The self-check in the week's notebook: one part's public tests, on the student's files, in the student's kernel.

The grade does not come from here: the same tests ask the same code with other inputs then.
"""

import contextlib
import io
import os
import sys

from nanolm import impl

# The kernel is no terminal: pytest says nothing, the lines below do.
WITHOUT = ("cacheprovider", "terminalreporter", "capture", "logging", "faulthandler", "warnings")
QUIET = ("-q", "--rootdir", str(impl.TESTS.parent), *(word for name in WITHOUT for word in ("-p", f"no:{name}")))


class NotYet(Exception):
    """A self-check that did not pass, as nbgrader's validation shows it: the message is the whole story."""

    def _render_traceback_(self):  # what Jupyter shows in place of a traceback
        return str(self).split("\n")


def self_check(part):
    """Run one part's public tests and print a line for each.

    The points that a core part earned are returned, for nbgrader; a depth part is bonus and returns nothing.
    Where nbgrader validates the notebook, a core part that is not all right raises NotYet.
    """
    tests, lines_of = _run(part)
    earned = sum(test["points"] for test in tests if test["outcome"] == "passed")
    possible = sum(test["points"] for test in tests)
    core = part in _parts().CORE
    lines = [
        f"Self-check of {part}: {earned} of {possible} points{'' if core else ' of bonus'}, by the public tests.",
        "The grade asks the same with other numbers: code that computes gets the same points.",
        *lines_of(tests),
    ]
    red = [test for test in tests if test["outcome"] != "passed"]
    if core and red and "NBGRADER_VALIDATING" in os.environ:
        raise NotYet("\n".join((lines[0], *lines_of(red))))
    print(*lines, sep="\n")
    return float(earned) if core else None


def _run(part):
    """The part's tests as tests/conftest.py reports them, and what tells of them in lines."""
    import pytest

    _forget_old_code()
    collected = _Collected()
    with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.redirect_stderr(said):
        code = pytest.main([*QUIET, "-k", f"test_{part}_", str(impl.TESTS)], plugins=[collected])
    if code not in (0, 1) or not collected.tests:
        last = (said.getvalue().strip().splitlines() or [f"pytest's exit code is {int(code)}"])[-1]
        raise NotYet(f"The self-check of {part} did not run: {last}")
    return collected.tests, collected.lines


def _forget_old_code():
    """The files may have been edited since the last check: import them afresh."""
    for name in [name for name in sys.modules if name.startswith("_nanolm_impl_")]:
        del sys.modules[name]


def _parts():
    if str(impl.TESTS) not in sys.path:
        sys.path.append(str(impl.TESTS))
    from machinery import parts

    return parts


class _Collected:
    """A pytest plugin that keeps what the tests' conftest found."""

    def __init__(self):
        self.tests = []

    def pytest_sessionfinish(self, session):
        from machinery import telling

        self.tests = list(session.config.states.values())
        self.lines = lambda tests: telling.one_by_one(tests, session.config.naming)
