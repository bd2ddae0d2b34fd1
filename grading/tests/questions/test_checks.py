"""Each exercise's own command asks all that its part asks of it alone."""

import shlex

from grading.authoring.stubs import CHECKS
from grading.paths import REFERENCE
from grading.proof.runs import reports
from machinery.parts import EXERCISE_PART


def test_an_exercises_command_runs_all_tests_that_ask_it_alone():
    ((_, entries),) = reports({"reference": REFERENCE}, lambda key: ("tests", "--ignore=tests/test_memory.py"))
    for exercise, command in CHECKS.items():
        file, *words = shlex.split(command)
        name = exercise.split(".")[0]
        part = EXERCISE_PART.get(name, "objectives")
        own = [entry for entry in entries if entry["asked"] == [name] and entry["part"] == part]
        wanted = words[1].split(" or ") if words else [""]
        left_out = [entry["id"] for entry in own if not (entry["id"].startswith(file) and _any(wanted, entry))]
        assert own and left_out == [], exercise


def _any(words, entry):
    return any(word in entry["name"] for word in words)
