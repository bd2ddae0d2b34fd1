"""The repository's own exercises: every one is reported as not started, none as passed."""

import json
import os

import pytest
import warm

from grading.authoring import stubs


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """One run of the students' tests on the stubs: (finished process, tests of the report)."""
    path = tmp_path_factory.mktemp("report") / "report.json"
    environment = {name: value for name, value in os.environ.items() if name != "NANOLM_IMPL"}
    finished = warm.python("-m", "pytest", "tests", "-p", "no:cacheprovider", "--report", path, env=environment)
    return finished, json.loads(path.read_text(encoding="utf-8"))["tests"]


def test_nothing_passes_and_nothing_is_called_a_mistake(run):
    finished, tests = run
    assert finished.returncode == 1
    assert [(t["id"], t["outcome"]) for t in tests if t["outcome"] not in ("not started", "waiting")] == []


def test_the_stubs_are_what_an_unset_switch_means(run):
    assert "implementation under test: exercises_en" in run[0].stdout


@pytest.mark.parametrize("name", stubs.CHECKS)
def test_every_exercise_is_named_as_not_started(run, name):
    messages = {test["message"] for test in run[1] if test["outcome"] == "not started"}
    assert [message for message in messages if f": {name} is not started." in message]
