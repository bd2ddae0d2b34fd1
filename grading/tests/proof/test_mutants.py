"""Generated mutants: they are made, the same tests catch them, and every excuse has a reason."""

import pytest

pytest.importorskip("cosmic_ray", reason="makes the mutants: pip install cosmic-ray")

from grading.proof import mutants  # noqa: E402
from grading.proof.runs import files_that_ask  # noqa: E402


def test_a_mutant_is_one_changed_line():
    made = list(mutants.mutants_of("rope.py"))
    assert len(made) > 100 and len({mutant.text for mutant in made}) == len(made)
    turned = next(mutant for mutant in made if "a * sin - b * cos" in mutant.new)
    assert "a * sin + b * cos" in turned.old and turned.file == "rope.py"


def test_a_file_is_asked_by_the_tests_that_ask_it():
    assert "tests/test_rope.py" in files_that_ask("rope.py")
    assert files_that_ask("objectives.py") == ["tests/test_objectives.py"]


@pytest.mark.proof
def test_some_mutants_are_caught_and_unchanged_code_survives(tmp_path):
    made = [mutant for mutant in mutants.mutants_of("rope.py") if "cos" in mutant.old][::12]
    text = (mutants.REFERENCE / "rope.py").read_text(encoding="utf-8")
    same = mutants.Mutant("rope.py", text, "", "")
    assert len(made) > 3 and mutants.survivors([*made, same], tmp_path, jobs=2) == [same]


def test_every_excuse_has_a_reason():
    assert all(len(reason.split()) > 4 for reason in mutants.equivalents().values())
