"""The kill matrix's own judgement: each promise is broken once, and it must say so."""

import pytest

from grading.proof import matrix
from grading.proof.bank import Mistake
from grading.proof.matrix import Matrix, accuracy, judge


def entry(part, *measured):
    return {"part": part, "measured": list(measured), "outcome": "failed", "fingerprint": []}


@pytest.fixture
def sound():
    """One mistake, one test, one right program: (matrix, mistakes, metadata)."""
    held = Matrix(tests={"test_rope_a": "rope"}, red={"r1": {"test_rope_a": entry("rope", 0.01, 50.0)}})
    held.rejected, held.noise = {("reference", "1 threads"): []}, {"test_rope_a": 0.02}
    held.passed, held.elsewhere = {"r1": set()}, {"r1": {"test_rope_a"}}
    return held, {"r1": Mistake("r1", "rope", (), "r1")}, {"r1": {"id": "r1", "test": "test_rope_a", "part": "rope"}}


def problems(held, mistakes, metadata, exceptions=()):
    judge(held, mistakes, metadata, dict.fromkeys(exceptions, "reason"))
    return held.problems


def test_a_sound_matrix_has_no_problems(sound):
    assert problems(*sound) == []


def test_a_named_test_that_stays_green(sound):
    held, *rest = sound
    held.tests["test_rope_b"] = "rope"
    held.red["r1"] = {"test_rope_b": entry("rope", 50.0)}
    assert "test_rope_a lets r1 through; red: test_rope_b" in problems(held, *rest)


def test_a_test_of_another_part_that_turns_red(sound):
    held, *rest = sound
    held.red["r1"]["test_block_a"] = entry("block", 50.0)
    assert problems(held, *rest) == ["r1 of rope turns test_block_a of block red"]


def test_a_right_program_that_is_rejected(sound):
    held, *rest = sound
    held.rejected[("einsum", "2 threads")] = ["test_rope_a"]
    assert problems(held, *rest) == ["the right program einsum is rejected (2 threads) by test_rope_a"]


def test_a_mistake_that_only_other_inputs_let_through(sound):
    held, *rest = sound
    held.elsewhere["r1"] = set()
    assert problems(held, *rest) == ["test_rope_a lets r1 through with other inputs"]


def test_a_mistake_that_the_grader_would_call_a_table_of_answers(sound):
    held, *rest = sound
    held.passed["r1"] = {"test_rope_b", "test_rope_c"}
    held.elsewhere["r1"] |= {"test_rope_b"}
    assert problems(held, *rest) == []
    held.elsewhere["r1"] |= {"test_rope_c"}
    (said,) = problems(held, *rest)
    assert said.startswith("r1 passes test_rope_b, test_rope_c with public inputs only")


def test_a_test_that_rejects_nothing(sound):
    held, *rest = sound
    held.tests["test_rope_b"] = "rope"
    assert problems(held, *rest) == ["test_rope_b rejects no mistake"]


def test_a_test_that_is_not_there(sound):
    held, mistakes, metadata = sound
    metadata["r1"]["test"] = "test_rope_gone"
    assert "r1 names test_rope_gone, and there is no such test" in problems(held, mistakes, metadata)


@pytest.mark.parametrize(
    ("kind", "noise", "distance"), [("noise", 0.2, 50.0), ("mistake", 0.02, 5.0)], ids=["noise", "mistake"]
)
def test_a_margin_under_ten(sound, kind, noise, distance):
    held, *rest = sound
    held.noise["test_rope_a"] = noise
    held.red["r1"]["test_rope_a"] = entry("rope", distance)
    (said,) = problems(held, *rest)
    assert said.startswith(f"test_rope_a: the margin to the {kind}") and said.endswith("is 5.0, under 10")
    held.problems.clear()
    assert problems(held, *rest, [("test_rope_a", kind)]) == []


def test_an_excuse_that_nobody_needs(sound):
    said = problems(*sound, [("test_rope_a", "noise")])
    assert said == ["margins.toml excuses test_rope_a (noise), which needs no excuse"]


def test_a_mistake_seen_without_a_distance_has_no_margin(sound):
    held, *rest = sound
    held.red["r1"]["test_rope_a"] = entry("rope", 0.01)  # the comparison held; a shape or an exception did not
    assert problems(held, *rest) == []


def test_accuracy_counts_equal_mistakes_as_one():
    metadata = {"a": {"id": "a"}, "b": {"id": "b", "same_as": "a"}, "c": {"id": "c"}}
    held = Matrix(named={"a": "b", "b": "a", "c": "a"}, pairs={("a", "c"): ["b"], ("b", "c"): []})
    assert accuracy(held, metadata) == (["c"], [("b", "c")])


def test_every_exception_has_a_reason():
    assert all(len(reason.split()) > 5 for reason in matrix.load_exceptions().values())
