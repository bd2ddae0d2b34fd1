"""A pytest plugin that lets the week's tests ask a submission through its workers.

The tests, their conftest and their judge stay as they are: conftest takes the implementation and the
Subject that are given here. Only the states that a worker can end in are added to theirs.
"""

from pathlib import Path

import pytest

from grading.grader.remote import RemoteSubject
from grading.grader.states import FAILED, NOT_SUBMITTED, OUT_OF_MEMORY, GraderError
from nanolm.impl import FILE_OF, ImplementationError
from nanolm.subject import ContractError, NotStarted, StudentError

NO_MEMORY = ("can't allocate memory", "Cannot allocate memory", "not enough memory")


class GraderPlugin:
    """One run of the week's tests on one submission. `golden` holds this run's stored answers."""

    def __init__(self, intake, office, golden, known_states=()):
        self.intake, self.office = intake, office
        self.golden = Path(golden)
        self.known_states = dict(known_states)  # of an earlier run, so that nothing is asked twice
        self.expected = {}  # node id -> test item
        self.tests = []  # the entries of tests/conftest.py, with the grader's states
        self.failure = None  # the GraderError that ended the run

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config):
        import stored

        stored.FOLDER = self.golden
        config.implementation = self.intake
        config.new_subject = lambda: RemoteSubject(self.intake, self.office)

    def pytest_collection_finish(self, session):
        self.expected = {item.nodeid: item for item in session.items}
        session.config.judge.states.update(self.known_states)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item):
        self.office.enter(item.part)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item, call):
        report = yield
        if call.excinfo is not None and isinstance(call.excinfo.value, GraderError):
            self.failure = call.excinfo.value
            item.session.shouldstop = "the grader failed"
        elif call.when == "call":
            entry, error = item.config.states[item.nodeid], call.excinfo.value if call.excinfo else None
            entry["in_the_tests_words"] = isinstance(error, AssertionError)  # and not in those of student code
            entry["exercise"] = error.name if isinstance(error, NotStarted) else ""
            self._refine(entry, error, item.funcargs["student"].asked)
            self.tests.append(entry)
        return report

    def pytest_sessionfinish(self, session):
        self.office.close()
        names = session.config.naming.explanations()
        for entry in self.tests:
            entry["mistake"] = names.get(entry["name"])

    def _refine(self, entry, error, asked):
        """Say what a test that is called failed really met."""
        lost, missing = self.office.lost, self._missing(asked)
        if lost is not None:
            entry["outcome"], entry["message"] = lost.state, lost.message
        elif entry["outcome"] != FAILED:
            return
        elif isinstance(error, ImplementationError) and missing:
            entry["outcome"], entry["message"] = NOT_SUBMITTED, missing
        elif isinstance(error, StudentError) and _is_for_memory(error):
            entry["outcome"], entry["message"] = OUT_OF_MEMORY, "your code asked for more memory than it may use"
        elif not isinstance(error, (AssertionError, StudentError, ContractError, ImplementationError, NotStarted)):
            entry["message"] = f"what your code gives can't be used as a result ({type(error).__name__})"
            entry["in_the_tests_words"] = True

    def _missing(self, asked):
        """Why a file that was asked is not there, or nothing."""
        modules = [module for name in asked for module in self._modules(name)]
        return next((self.intake.why_missing(module) for module in modules if module not in self.intake.texts), "")

    @staticmethod
    def _modules(name):
        return ("modules", "rope", "attention", "model") if name == "LanguageModel" else (FILE_OF[name],)


def _is_for_memory(error):
    return error.kind == "MemoryError" or any(words in error.message for words in NO_MEMORY)
