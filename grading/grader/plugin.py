"""A pytest plugin that lets the week's tests ask one submission after the other through its workers.

The tests, their conftest and their judge stay as they are: conftest takes the implementation and the
Subject that are given here. Only the states that a worker can end in are added to theirs.
"""

from pathlib import Path

import pytest

from grading.grader.remote import RemoteSubject
from grading.grader.states import FAILED, NOT_SUBMITTED, OUT_OF_MEMORY, PASSED, GraderError
from grading.grader.student_files import Intake
from nanolm.errors import ContractError, NotStarted, StudentError
from nanolm.impl import FILE_OF, ImplementationError

NO_MEMORY = ("can't allocate memory", "Cannot allocate memory", "not enough memory")


class GraderPlugin:
    """The week's tests, collected once. `serve` is called with this object when they can be run."""

    def __init__(self, serve):
        self.serve = serve
        self.intake, self.workers = Intake("nobody"), None
        self.tests = []  # the entries of tests/conftest.py, with the grader's states

    @property
    def parts(self):
        """How many parts of the week the tests ask."""
        return len({item.part for item in self._items})

    def run(self, intake, workers, golden, seed, only=None, known_states=None):
        """Run the tests, or `only` those with these ids, on a submission: their entries. GraderError if that fails.

        `golden` holds the stored answers of this seed, `known_states` those that need not be asked again.
        """
        from machinery import stored

        stored.FOLDER = Path(golden)
        self.intake, self.workers, self.tests = intake, workers, []
        config = self._config
        config.begin(seed)
        config.judge.states.update(known_states or {})
        items = [item for item in self._items if only is None or item.nodeid in only]
        for item in self._items:  # what stays green speaks against a name too
            if config.judge.states.get(item.name) == PASSED and item not in items:
                config.naming.note_passed(item.part, item.name)
        try:
            for item in items:
                self.tests.append(self._entry(item))
        finally:
            workers.close()
        if not items:
            raise GraderError("there are no tests to run")
        names = config.naming.explanations()
        return [{**entry, "mistake": names.get(entry["name"])} for entry in self.tests]

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config):
        config.implementation = self.intake
        config.new_subject = lambda: RemoteSubject(self.intake, self.workers)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session):
        self._config, self._items = session.config, session.items
        if session.testsfailed:
            raise GraderError("the tests could not be collected")
        for item in session.items:
            if set(item.fixturenames) - {"student", "request"}:
                raise GraderError(f"{item.name} asks for more than `student`, which is all that a test has here")
        self.serve(self)
        return True

    def _entry(self, item):
        """Run one test: its entry. Nothing here needs pytest's hooks around a test, and they would cost time."""
        self.workers.enter(item.part)
        student, error = self._config.new_subject(), None
        try:
            item.function(student)
            self.workers.settle()
        except GraderError:
            raise
        except Exception as raised:
            error = raised
        try:
            entry = self._config.entry_of(item, student, error)
        except Exception as raised:  # of a red test: what it has said is too large, or too odd, to be told or named
            if error is None:
                raise
            error = raised
            student.transcript.clear()
            entry = self._config.entry_of(item, student, error)
        entry["out_of_the_grader"] = False  # the message: no input, answer or text of student code is in it
        entry["exercise"] = error.name if isinstance(error, NotStarted) else ""
        self._refine(entry, error, student.asked)
        return entry

    def _refine(self, entry, error, asked):
        """Say what a test that is called failed really met."""
        lost, missing = self.workers.lost, self._missing(asked)
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
