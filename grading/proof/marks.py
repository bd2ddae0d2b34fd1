"""Marks: run the named tests on one implementation and add up their points, part by part."""

import json
import os
import runpy
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from grading.paths import ROOT

WEEK = runpy.run_path(str(ROOT / "tests" / "machinery" / "parts.py"))  # the parts in their order, core and depth


class NoReport(Exception):
    """The tests did not run; the message is one sentence."""


@dataclass(frozen=True)
class Marks:
    """Points of some tests: earned by those that passed, of all that there are."""

    earned: int
    possible: int


def report(folder):
    """The report of the named tests on the implementation in `folder`: a list of tests, see tests/conftest.py.

    The implementation is imported by the process that tests it: for code that is trusted. NoReport where pytest
    can't run on it.
    """
    with tempfile.TemporaryDirectory() as room:
        file = Path(room) / "report.json"
        run = subprocess.run(
            [sys.executable, "-m", "pytest", "tests", "-q", "-p", "no:cacheprovider", "--report", str(file)],
            cwd=ROOT, env={**os.environ, "NANOLM_IMPL": str(folder)}, capture_output=True, text=True, encoding="utf-8",
        )  # fmt: skip
        if run.returncode not in (0, 1) or not file.is_file():  # 1: some tests are not passed
            last = (run.stderr.strip() or run.stdout.strip() or "no output").splitlines()[-1]
            raise NoReport(f"The tests did not run on {folder} (pytest's exit code {run.returncode}): {last}")
        return json.loads(file.read_text(encoding="utf-8"))["tests"]


def of_parts(tests, parts):
    """Those of the tests that belong to these parts."""
    return [test for test in tests if test["part"] in parts]


def marks(tests):
    """The Marks of some tests of a report."""
    earned = sum(test["points"] for test in tests if test["outcome"] == "passed")
    return Marks(earned, sum(test["points"] for test in tests))


def by_part(tests):
    """{part: its Marks}, every part of the week in its order."""
    return {part: marks(of_parts(tests, (part,))) for part in WEEK["PARTS"]}


def core_and_bonus(tests):
    """The Marks of the core, which come to 100, and those of the depth parts and of advice, the bonus."""
    return marks(of_parts(tests, WEEK["CORE"])), marks(of_parts(tests, WEEK["DEPTH"] + WEEK["ADVICE"]))
