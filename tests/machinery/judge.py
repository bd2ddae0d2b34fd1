"""Whose mistake is it? What a test that did not pass says about the parts."""

import importlib
from pathlib import Path

from machinery import expect, parts
from nanolm.errors import ContractError, NotStarted, StudentError
from nanolm.impl import FILE_OF, ImplementationError

PROBLEMS = (expect.Mistake, StudentError, ContractError, ImplementationError)


class Judge:
    """Gives each test its state: passed, failed, not started, waiting or advice.

    A red test whose ingredients are not right themselves waits for them. Their own tests have run
    before it in the order of the week; where they were left out of the run, they are run when asked.
    `new_subject` makes the Subject that such a test asks.
    """

    def __init__(self, new_subject):
        self.new_subject = new_subject
        self.states = {}  # test name -> state

    def state(self, test, asked, error):
        """State and one-line message of a test function that asked for these exercises and ended so."""
        state, message = self._state(test, asked, error)
        self.states[test.__name__] = state
        return state, message

    def _state(self, test, asked, error):
        part = parts.part_of_test(test.__name__)
        if error is None:
            return "passed", ""
        if isinstance(error, NotStarted):
            missing = parts.part_of_exercise(error.name)
            if missing in (part, "objectives"):
                return "not started", str(error)
            return "waiting", f"waiting for {missing}: {error.name} is not started"
        if not isinstance(error, PROBLEMS):
            return "failed", f"the test itself broke: {type(error).__name__}: {error}"
        if isinstance(error, ImplementationError) and error.module not in {"", *map(FILE_OF.get, asked)}:
            return "waiting", f"waiting for {error.module}.py: it can't be used"
        for needed, names in self._ingredients(test, part, asked):
            asked_too = [name for name in names if parts.matters(name, test.__name__)]
            if any(self._state_of(name) in ("failed", "not started") for name in asked_too):
                return "waiting", f"waiting for {needed}: its own tests come first"
        if part not in parts.ADVICE:
            return "failed", str(error)
        return "advice", str(error) if isinstance(error, expect.Mistake) else "your code can't be measured: it raises"

    def _ingredients(self, test, part, asked):
        """(part, names of its tests that matter here) for all that this test is made of, its own part apart."""
        marked = [name for mark in getattr(test, "pytestmark", ()) if mark.name == "needs" for name in mark.args]
        made_of = {needed: None for exercise in asked for needed in parts.MADE_OF.get(exercise, ())}
        for needed in parts.PARTS:
            if needed in marked and needed != part:
                yield needed, [name for name in all_tests() if parts.part_of_test(name) == needed]
            elif needed in made_of and needed != part:
                names = [name for name in all_tests() if parts.part_of_test(name) == needed]
                yield needed, parts.ROPE_AT_REST if needed == "rope" else names

    def _state_of(self, name):
        if name not in self.states:
            test, student = all_tests()[name], self.new_subject()
            self.states[name] = "waiting"  # while it runs: parts are not made of each other in a ring
            try:
                test(student)
                error = None
            except Exception as raised:
                error = expect.usable(raised, student.asked, student.transcript)
                if not isinstance(error, (*PROBLEMS, NotStarted)):
                    raise
            expect.MEASURED.clear()
            self.state(test, student.asked, error)
        return self.states[name]


def all_tests():
    """Every test function of the week by name."""
    if not _TESTS:
        for file in parts.ASKS:
            for name, test in vars(importlib.import_module(Path(file).stem)).items():
                if name.startswith("test_"):
                    _TESTS[name] = test
    return _TESTS


_TESTS = {}
