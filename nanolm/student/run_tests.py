"""The week's tests on the implementation under test, run by pytest in this process, which says nothing itself."""

import contextlib
import hashlib
import io
import sys
from dataclasses import dataclass

from nanolm import impl

BEFORE = "nanolm/right/"  # where pytest's cache has the parts that were right the last time, by implementation
WITHOUT = ("terminalreporter", "capture", "logging", "faulthandler", "warnings")
QUIET = ("-q", "--rootdir", str(impl.TESTS.parent), *(word for name in WITHOUT for word in ("-p", f"no:{name}")))
RIGHT = ("passed", "advice")  # states of a test that leave nothing to mend


class NotRun(Exception):
    """The tests did not run; the message is one sentence, or what pytest says."""


@dataclass(frozen=True)
class Run:
    """What one run has found."""

    tests: list  # entries of tests/conftest.py, each with the "mistake" that its answers name, or None
    naming: object  # machinery.naming.Naming
    implementation: impl.Implementation
    code: int  # pytest's own
    newly_right: tuple  # parts that were not at the last run of all; none where there was none


def run_tests(*words):
    """The Run of the tests that pytest's arguments choose; NotRun where there is none."""
    import pytest

    _forget_old_code()
    found = _Found()
    with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.redirect_stderr(said):
        code = pytest.main([*QUIET, *words, str(impl.TESTS)], plugins=[found])
    if code not in (0, 1) or not found.tests:
        last = (said.getvalue().strip().splitlines() or [f"pytest's exit code is {int(code)}"])[-1]
        raise NotRun(last.removeprefix("ERROR: "))
    return Run(found.tests, found.naming, found.implementation, int(code), found.newly_right)


def parts():
    """machinery.parts: the parts of the week."""
    if str(impl.TESTS) not in sys.path:
        sys.path.append(str(impl.TESTS))
    from machinery import parts

    return parts


def _forget_old_code():
    """The files may have been edited since the last run: import them afresh."""
    for name in [name for name in sys.modules if name.startswith("_nanolm_impl_")]:
        del sys.modules[name]


class _Found:
    """A pytest plugin that keeps what the tests' conftest found."""

    def __init__(self):
        self.tests = []

    def pytest_sessionfinish(self, session):
        config = session.config
        names = config.naming.explanations()
        self.tests = [{**test, "mistake": names.get(test["name"])} for test in config.states.values()]
        self.naming, self.implementation = config.naming, config.implementation
        self.newly_right = self._newly_right(getattr(config, "cache", None))

    def _newly_right(self, cache):
        """Compared with what pytest's cache holds; it is brought up to date."""
        if cache is None:
            return ()
        wrong = {test["part"] for test in self.tests if test["outcome"] not in RIGHT}
        right = [part for part in parts().PARTS if part not in wrong]
        place = BEFORE + hashlib.sha256(str(self.implementation.folder).encode()).hexdigest()[:16]
        before = cache.get(place, None)
        cache.set(place, right)
        return () if before is None else tuple(part for part in right if part not in before)
