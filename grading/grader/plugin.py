"""A pytest plugin that lets the week's tests ask one submission after the other through its workers.

The tests, their conftest and their judge stay as they are: conftest takes the implementation and the
Subject that are given here. Only the states that a worker can end in are added to theirs.
"""

from pathlib import Path

import pytest

from grading.grader.intake import Intake
from grading.grader.remote import RemoteSubject
from grading.grader.states import FAILED, NOT_SUBMITTED, OUT_OF_MEMORY, GraderError
from nanolm.impl import FILE_OF, ImplementationError
from nanolm.subject import ContractError, NotStarted, StudentError

NO_MEMORY = ("can't allocate memory", "Cannot allocate memory", "not enough memory")


class GraderPlugin:
    """The week's tests, collected once. `serve` is called with this object when they can be run."""

    def __init__(self, serve):
        self.serve = serve
        self.intake, self.office = Intake("nobody"), None
        self.tests = []  # the entries of tests/conftest.py, with the grader's states
        self.failure = None  # the GraderError that ended a run

    def run(self, intake, office, golden, seed, only=None, known_states=()):
        """Run the tests, or `only` those with these ids, on a submission: their entries. GraderError if that fails.

        `golden` holds the stored answers of this seed, `known_states` those that need not be asked again.
        """
        import stored

        stored.FOLDER = Path(golden)
        self.intake, self.office, self.tests, self.failure = intake, office, [], None
        config = self._session.config
        config.begin(seed)
        config.judge.states.update(known_states)
        items = [item for item in self._session.items if only is None or item.nodeid in only]
        try:
            for item, following in zip(items, [*items[1:], None], strict=True):
                config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if self.failure:
                    raise self.failure
        finally:
            office.close()
        if len(self.tests) != len(items) or not items:
            raise GraderError(f"only {len(self.tests)} of {len(items)} tests have a state")
        names = config.naming.explanations()
        return [{**entry, "mistake": names.get(entry["name"])} for entry in self.tests]

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config):
        config.implementation = self.intake
        config.new_subject = lambda: RemoteSubject(self.intake, self.office)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session):
        self._session = session
        if session.testsfailed:
            raise GraderError("the tests could not be collected")
        self.serve(self)
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item):
        self.office.enter(item.part)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item, call):
        report = yield
        if call.excinfo is not None and isinstance(call.excinfo.value, GraderError):
            self.failure = call.excinfo.value
        elif call.when == "call":
            entry, error = item.config.states[item.nodeid], call.excinfo.value if call.excinfo else None
            entry["asked"] = list(item.funcargs["student"].asked)
            entry["out_of_the_grader"] = False  # the message: no input, answer or text of student code is in it
            entry["exercise"] = error.name if isinstance(error, NotStarted) else ""
            self._refine(entry, error, item.funcargs["student"].asked)
            self.tests.append(entry)
        return report

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
            entry["out_of_the_grader"] = True

    def _missing(self, asked):
        """Why a file that was asked is not there, or nothing."""
        modules = [module for name in asked for module in self._modules(name)]
        return next((self.intake.why_missing(module) for module in modules if module not in self.intake.texts), "")

    @staticmethod
    def _modules(name):
        return ("modules", "rope", "attention", "model") if name == "LanguageModel" else (FILE_OF[name],)


def _is_for_memory(error):
    return error.kind == "MemoryError" or any(words in error.message for words in NO_MEMORY)
