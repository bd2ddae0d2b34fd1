"""`nbgrader validate` runs the public tests in the student's kernel and says in words what is not right yet."""

import io
import shutil

import nbformat
import pytest

pytest.importorskip("nbgrader")
pytest.importorskip("ipykernel")


from grading.authoring.cells import is_check, nbgrader_of  # noqa: E402
from grading.authoring.week_notebook import TARGET  # noqa: E402
from grading.demo import samples  # noqa: E402
from grading.paths import EXERCISES, ROOT  # noqa: E402

ASKED = ("swiglu", "budget", "softcap")


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What nbgrader says of three parts: swiglu is right, budget has a mistake, softcap is a stub of a depth part."""
    from nbgrader.validator import Validator

    folder = tmp_path_factory.mktemp("student")
    shutil.copytree(samples.folder("all_right"), folder / "exercises_en")
    shutil.copy(samples.folder("five_mistakes") / "budget.py", folder / "exercises_en")
    shutil.copy(EXERCISES / "attention.py", folder / "exercises_en")
    notebook = nbformat.read(TARGET, as_version=4)
    notebook.cells = [
        cell for cell in notebook.cells
        if "import self_check" in cell.source or (is_check(cell) and nbgrader_of(cell)["grade_id"] in ASKED)
    ]  # fmt: skip
    nbformat.write(notebook, folder / "week06.ipynb")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        patch.delenv("NANOLM_IMPL", raising=False)
        validator = Validator()
        validator.stream = io.StringIO()
        validator.validate_and_print(str(folder / "week06.ipynb"))
    return validator.stream.getvalue()


def test_a_part_that_is_not_right_fails_with_a_sentence(said):
    assert "VALIDATION FAILED ON 1 CELL(S)" in said
    assert "Self-check of budget: 6 of 10 points, by the public tests." in said
    assert "test_budget_cache_bytes_per_token" in said and "python -m nanolm hint kvcache-uses-query-heads" in said
    assert "Traceback" not in said


def test_what_is_right_and_what_is_bonus_does_not_fail(said):
    assert "Self-check of swiglu" not in said and "Self-check of softcap" not in said
