"""One submission graded: the private run gives the points, the public run names the mistakes.

What a test or student code says about a failure is repeated only from the public run, whose inputs
everybody has: so no text can carry an input or an answer of the private run away.
"""

import gc
import os
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from grading.grader.allowance import Allowance
from grading.grader.inside.text import clean
from grading.grader.plugin import GraderPlugin
from grading.grader.states import (
    CRASHED,
    FAILED,
    GRADER_ERROR,
    NOT_STARTED,
    OUT_OF_MEMORY,
    PASSED,
    REFUSED,
    TIMED_OUT,
    WAITING,
    GraderError,
)
from grading.grader.workers import Workers
from grading.lean_pytest import LEAN
from grading.paths import ROOT
from nanolm.impl import FILE_OF

SETTINGS = (*LEAN, "--rootdir", str(ROOT))
PUBLIC_ANSWERS = ROOT / "tests" / "golden"
PARROT = "this part is right for the numbers of the public tests only: does your code compute, or look up?"
FLOOD = "your code prints a lot: its output was cut. That changes no points."
READY_MADE = "no points: this part is torch's ready-made one, and the exercise is to write it"
LOST = {
    TIMED_OUT: "your code took more time than it may: is there a loop that does not end?",
    OUT_OF_MEMORY: "your code asked for more memory than it may use",
    CRASHED: "your code ended its process",
    REFUSED: "an answer was refused: it has no form that a result may have",
}
ELSEWHERE = "with other numbers than those of the public tests your code gives a wrong answer or an exception"


@dataclass(frozen=True)
class Exam:
    """What all submissions of a run are asked: the tests by their pytest arguments, the seed, the answers."""

    seed: int
    answers: Path
    arguments: tuple = ("tests",)


def sit(arguments, serve):
    """Have pytest collect the tests that the arguments name, and call `serve` with what runs them, a GraderPlugin.

    Collected once, they can be run on any number of submissions, each in a fork. GraderError where they can't be.
    """
    import pytest

    served = []

    def when_ready(plugin):
        served.append(plugin)
        _warm_up()
        serve(plugin)

    with unheard():
        code = pytest.main([*SETTINGS, *arguments], plugins=[GraderPlugin(when_ready)])
    if not served:
        raise GraderError(f"the tests could not be collected (pytest's exit code {int(code)})")


def _warm_up():
    """What the tests read when they first need it, read before the forks."""
    from machinery import judge, naming

    judge.all_tests()
    naming.read_fingerprints()
    gc.collect()
    gc.freeze()  # a collection in a fork would copy every page that it looks at


def grade(intake, zygote, exam, tests):
    """The result of one submission, as plain data that is the same whenever it is made. GraderError if it can't be.

    `tests` is the GraderPlugin that has collected them.
    """

    all_workers, allowance = [], Allowance(zygote.limits, tests.parts)

    def run(name, *args):
        all_workers.append(Workers(zygote, intake, allowance, name))
        return tests.run(intake, all_workers[-1], *args)

    private = run("private", exam.answers, exam.seed)
    states = {test["name"]: test["outcome"] for test in private}

    def in_public(state):
        ids = {test["id"] for test in private if test["outcome"] == state}
        return run("public", PUBLIC_ANSWERS, 0, ids, states) if ids else []

    public = in_public(FAILED)
    if any(test["outcome"] == PASSED for test in public):  # looked up? then what waits may be looked up too
        public += in_public(WAITING)
    notes = (FLOOD,) if any(workers.flood for workers in all_workers) else ()
    return _result(intake, private, {test["id"]: test for test in public}, notes)


def failed_result(intake, sentence):
    """The result of a submission that the grader could not grade: no points, and none taken."""
    return {**_head(intake), "state": GRADER_ERROR, "error": sentence, "points": None, "tests": []}


@contextmanager
def unheard():
    """Nothing that a run of the tests prints reaches the terminal."""
    kept = os.dup(1), os.dup(2)
    nothing = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        yield
    finally:
        for fd, copy in enumerate(kept, 1):
            os.dup2(copy, fd)
            os.close(copy)
        os.close(nothing)


def _head(intake):
    return {
        "submission": intake.name,
        "notes": list(map(clean, intake.notes)),
        "files": {module: "taken in" for module in intake.texts}
        | {clean(path): "taken in" for path in intake.beside}
        | intake.refused,
    }


def _result(intake, private, public, notes=()):
    tests = []
    for test in private:
        shown = {name: test[name] for name in ("name", "part", "points")}
        shown["state"] = test["outcome"]
        shown["earned"] = test["points"] if test["outcome"] == PASSED else 0
        shown["message"] = _message(test, public.get(test["id"]))
        shown["mistake"] = (public.get(test["id"]) or {}).get("mistake")
        tests.append(shown)
    _void_parrots(tests, private, public)
    _void_ready_made(tests)
    points = sum(test["earned"] for test in tests)
    head = _head(intake)
    head["notes"] += notes
    return {**head, "state": "graded", "error": "", "points": points, "tests": tests}


def _void_parrots(tests, private, public):
    """Take the points of an exercise that knows the public numbers only: two tests of one part say so.

    Code that computes, right or wrong, does not pass a test with one seed and fail it with another;
    one such test may be a matter of rounding, two are not. The tests of a part that ask the same
    exercise are void with them, also those that can ask one number only.
    """
    flipped = [test for test in private if public.get(test["id"], {}).get("outcome") == PASSED]
    count = Counter((test["part"], exercise) for test in flipped for exercise in test["asked"])
    for test, asked in zip(tests, (test["asked"] for test in private), strict=True):
        if test["state"] in (PASSED, FAILED, WAITING) and any(count[test["part"], exercise] >= 2 for exercise in asked):
            test |= {"state": FAILED, "earned": 0, "message": PARROT, "mistake": None}


def _void_ready_made(tests):
    """Take the points of a part that is torch's own: the test that says so gives none itself."""
    parts = {test["part"] for test in tests if test["name"].endswith("_is_your_own") and test["state"] == FAILED}
    for test in tests:
        if test["part"] in parts and test["earned"]:
            test |= {"earned": 0, "message": READY_MADE}


def _message(private, public):
    """What the student may read about one test."""
    state = private["outcome"]
    if state == PASSED:
        return ""
    if state == NOT_STARTED:
        return f"{_exercise(private['exercise'])} is not started"
    if state == WAITING:
        return private["message"].split(":")[0]
    if state in LOST:  # not how, nor after how many seconds or bytes: that could carry a number of the private run away
        return LOST[state]
    if state != FAILED or private["out_of_the_grader"]:
        return private["message"]
    return public["message"] if public and public["outcome"] != PASSED else ELSEWHERE


def _exercise(name):
    """A name that student code has given, where it is one that we know."""
    return name if name.split(".")[0] in FILE_OF and name.replace(".", "_").isidentifier() else "this part"
