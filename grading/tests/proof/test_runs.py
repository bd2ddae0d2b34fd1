"""Runs that are forked from one collection say what pytest says, and leave out only what can't matter."""

import json
import os
import shutil

import pytest
import reports_apart
import warm

from grading.demo import samples
from grading.lean_pytest import WITHOUT_CLOCK
from grading.paths import REFERENCE
from grading.proof.runs import FILES, files_that_ask
from nanolm.impl import CONTRACT

pytestmark = pytest.mark.proof

SAMPLES = ("five_mistakes", "half_finished")
OTHER = ("--draw-seed=7", "--threads=2")


def by_pytest(folder, report, *options):
    """The report of the students' own command."""
    words = ("-m", "pytest", "tests", "-q", WITHOUT_CLOCK, f"--report={report}", *options)
    warm.python(*words, env={**os.environ, "NANOLM_IMPL": str(folder)})
    return json.loads(report.read_text(encoding="utf-8"))["tests"]


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_forked_run_says_what_the_students_command_says(sample, tmp_path):
    folder = samples.folder(sample)
    here = reports_apart.reports({sample: folder}, "tests", *OTHER)[sample]
    assert json.loads(json.dumps(here)) == by_pytest(folder, tmp_path / "report.json", *OTHER)
    assert len({test["outcome"] for test in here}) > 1


def test_a_red_test_can_be_enough():
    (tests,) = reports_apart.reports({"sample": samples.folder("five_mistakes")}, "tests", "-x").values()
    assert [test["outcome"] == "failed" for test in tests] == [False] * (len(tests) - 1) + [True]


@pytest.mark.parametrize("module", CONTRACT)
def test_no_test_depends_on_a_file_that_it_is_not_said_to_ask(module, tmp_path):
    folder = shutil.copytree(REFERENCE, tmp_path / "without")
    (folder / f"{module}.py").unlink()
    others = [file for file in FILES if file not in files_that_ask(f"{module}.py")]
    (tests,) = reports_apart.reports({module: folder}, *others).values()
    assert tests and {test["outcome"] for test in tests} == {"passed"}
