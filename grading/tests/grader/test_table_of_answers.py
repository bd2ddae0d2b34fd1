"""A table of the public run's answers earns next to nothing under a secret: no question is the same there."""

import shutil
from pathlib import Path

import pytest
import reports_apart

from grading.paths import REFERENCE
from grading.proof.marks import by_part
from nanolm.impl import CONTRACT

pytestmark = pytest.mark.proof

SEED = "31337"  # of a run that is not public


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The reports of the public run, in which the table is learnt and then used, and of another run."""
    room = tmp_path_factory.mktemp("table")
    folder, learning = room / "table", room / "heard" / "learning"
    shutil.copytree(REFERENCE, folder)
    shutil.copy(Path(__file__).with_name("table_of_answers.py"), folder)
    for name in CONTRACT:
        with (folder / f"{name}.py").open("a", encoding="utf-8") as file:
            file.write("\nfrom .table_of_answers import learn_by_heart\n\nlearn_by_heart(globals())\n")
    learning.parent.mkdir()
    learning.touch()
    reports_apart.reports({"learning": folder}, "tests", "--ignore=tests/test_memory.py")
    learning.unlink()
    return [
        reports_apart.reports({"table": folder}, "tests", "--ignore=tests/test_memory.py", f"--draw-seed={seed}")[
            "table"
        ]
        for seed in ("0", SEED)
    ]


def test_the_table_knows_the_public_run(runs):
    assert [test["name"] for test in runs[0] if test["outcome"] != "passed"] == []


def test_the_table_earns_little_in_another_run(runs):
    # golden.py draws stored answers anew for each secret (test_grader_secret.py); `--draw-seed` alone does not
    drawn = [test for test in runs[1] if "_stored_" not in test["name"]]
    earned = {part: marks.earned for part, marks in by_part(drawn).items() if marks.earned}
    # what shapes, dtypes and an empty input earn
    assert earned == {"rmsnorm": 2, "swiglu": 1, "rope": 1, "attention": 1, "block": 1, "backward": 1, "objectives": 1}
