"""Naming a mistake from its answers: right ones by name, unknown ones not at all, right code never."""

import shutil

import pytest
import torch

from grading.paths import REFERENCE
from grading.proof.bank import load_mistakes, materialise
from grading.proof.runs import RunError, reports
from machinery import naming
from nanolm.errors import StudentError
from nanolm.student import hint

UNKNOWN = (
    "return (wide * torch.rsqrt(mean_square + self.eps)",
    "return (1.37 * wide * torch.rsqrt(mean_square + self.eps)",
)


@pytest.fixture(scope="module")
def named(tmp_path_factory):
    """{program: {test: mistake id}} of the red tests of some programs, each run once."""
    room, mistakes = tmp_path_factory.mktemp("programs"), load_mistakes()
    programs = {
        "one": ["rmsnorm-centers"],
        "two parts": ["rmsnorm-centers", "rope-theta-hard-coded"],
        "two in one part": ["rmsnorm-centers", "rmsnorm-eps-argument-ignored"],
        "right": [],
    }
    for program, ids in programs.items():
        materialise(REFERENCE, [mistakes[name] for name in ids], room / program)
    unknown = shutil.copytree(REFERENCE, room / "unknown")
    file = unknown / "modules.py"
    assert UNKNOWN[0] in file.read_text(encoding="utf-8")
    file.write_text(file.read_text(encoding="utf-8").replace(*UNKNOWN), encoding="utf-8")
    found = {}
    for program, tests in reports({name: room / name for name in (*programs, "unknown")}):
        assert not isinstance(tests, RunError), tests
        found[program] = {test["name"]: test["mistake"] for test in tests if test["outcome"] == "failed"}
    return found


def test_a_known_mistake_is_named_in_every_red_test(named):
    assert named["one"] and set(named["one"].values()) == {"rmsnorm-centers"}


def test_mistakes_of_two_parts_are_both_named(named):
    assert set(named["two parts"].values()) == {"rmsnorm-centers", "rope-theta-hard-coded"}


def test_of_two_mistakes_in_one_part_at_least_one_is_named(named):
    assert {"rmsnorm-centers", "rmsnorm-eps-argument-ignored"} & set(named["two in one part"].values())


def test_an_unknown_mistake_is_not_guessed(named):
    assert named["unknown"] and set(named["unknown"].values()) == {None}


def test_right_code_is_not_accused(named):
    assert named["right"] == {}


def test_a_fingerprint_tells_values_shapes_dtypes_and_exceptions_apart():
    answers = [
        torch.ones(3),
        torch.ones(3) * 1.01,
        torch.ones(1, 3),
        torch.ones(3).bfloat16(),
        torch.full((3,), torch.nan),
        torch.arange(3.0),
        ValueError("x"),
        TypeError("x"),
        7,
        {"weight": (3,)},
        {"weight": (4,)},
    ]
    prints = [naming.fingerprint([answer]) for answer in answers]
    for i, one in enumerate(prints):
        for j, other in enumerate(prints):
            assert naming.matches(one, other) == (i == j), (answers[i], answers[j])


def test_a_fingerprint_forgives_rounding():
    value = torch.randn(50, generator=torch.Generator().manual_seed(0))
    assert naming.matches(naming.fingerprint([value]), naming.fingerprint([value * (1 + 1e-5)]))


def held(known, **reds):
    """A Naming that knows these {test: {mistake: answer}} and has met these reds."""
    naming_of_run = naming.Naming()
    naming_of_run._known = {
        test: {name: [naming.fingerprint([answer])] for name, answer in of.items()} for test, of in known.items()
    }
    mistakes = {name for of in known.values() for name in of}
    naming_of_run._reddens = {name: [frozenset(test for test in known if name in known[test])] for name in mistakes}
    for test, answer in reds.items():
        naming_of_run.note(test, naming.fingerprint([answer]))
    return naming_of_run


KNOWN = {f"test_rope_{letter}": {"rope-theta-hard-coded": torch.ones(2)} for letter in "abc"}


def test_what_is_said_of_a_known_mistake_and_of_one_beside_it():
    all_red = dict.fromkeys(KNOWN, torch.ones(2))
    first, *rest = naming.sentences(held(KNOWN, **all_red), "rope")
    assert "(3 of 3 red tests answer exactly so)" in first and rest[-1].endswith("hint rope-theta-hard-coded")
    said = list(naming.sentences(held(KNOWN, **all_red, test_rope_d=torch.zeros(2)), "rope"))
    assert said[-1].startswith("rope: and something else that we don't know, in 1 of 4")


def test_a_name_needs_the_weight_of_most_red_tests():
    one_of_three = {"test_rope_a": torch.ones(2), "test_rope_b": torch.zeros(2), "test_rope_c": torch.zeros(2)}
    (only,) = naming.sentences(held(KNOWN, **one_of_three), "rope")
    assert only.startswith("rope: not one of the mistakes that we know, or several at once.")


def test_an_exception_names_no_mistake_of_values():
    error = StudentError("RuntimeError", "The size of tensor a (3) must match the size of tensor b (4)")
    test = hint.mistakes()["rope-theta-hard-coded"]["test"]
    known = {test: {"rope-theta-hard-coded": torch.ones(2)}, "test_rope_a": {"rope-theta-hard-coded": error}}
    assert held(known, test_rope_a=error).named("rope") == []
    assert list(naming.sentences(held(known, test_rope_a=error), "rope")) == []


def test_what_is_nearly_right_is_said_to_be():
    naming_of_run = held({"test_rope_a": {}})
    naming_of_run.note("test_rope_a", naming.fingerprint([torch.ones(2)]), digits=3)
    (only,) = naming.sentences(naming_of_run, "rope")
    assert only.startswith("rope: nearly right, to 3 digits.")


def test_exceptions_are_told_apart_by_what_they_are_about():
    errors = [
        StudentError("RuntimeError", "view size is not compatible with input tensor's size and stride"),
        StudentError("RuntimeError", "Expected all tensors to be on the same device, but got mat2 on cpu"),
        StudentError("TypeError", "unsupported operand type(s) for +: 'Tensor' and 'NoneType'"),
    ]
    prints = [naming.fingerprint([error]) for error in errors]
    for i, one in enumerate(prints):
        assert naming.raised(one)
        for j, other in enumerate(prints):
            assert naming.matches(one, other) == (i == j)
    again = StudentError("RuntimeError", "Expected all tensors to be on the same device, but got tensors on meta")
    assert naming.matches(naming.fingerprint([again]), prints[1])


def test_of_mistakes_that_no_test_tells_apart_both_are_asked_about():
    alike = {test: of | {"rope-exponent-missing-2": torch.ones(2)} for test, of in KNOWN.items()}
    (named,) = held(alike, **dict.fromkeys(KNOWN, torch.ones(2))).named("rope")
    assert {named.id, *named.others} == {"rope-theta-hard-coded", "rope-exponent-missing-2"}
    said = list(naming.sentences(held(alike, **dict.fromkeys(KNOWN, torch.ones(2))), "rope"))
    assert said[-1].strip().startswith("Or: ") and named.others[0] in said[-1]


def test_what_is_green_counts_against_a_name():
    naming_of_run = held(KNOWN, test_rope_a=torch.ones(2))
    for test in ("test_rope_b", "test_rope_c"):
        naming_of_run.note_entry({"name": test, "part": "rope", "outcome": "passed"})
    assert naming_of_run.named("rope") == []


def test_green_tests_that_it_reddens_in_another_hand_only_do_not_count_against_a_name():
    naming_of_run = held(KNOWN, test_rope_a=torch.ones(2))
    naming_of_run._reddens["rope-theta-hard-coded"].append(frozenset({"test_rope_a"}))
    for test in ("test_rope_b", "test_rope_c"):
        naming_of_run.note_entry({"name": test, "part": "rope", "outcome": "passed"})
    assert [named.id for named in naming_of_run.named("rope")] == ["rope-theta-hard-coded"]


def test_a_name_may_come_from_any_hand():
    known = {test: {"rope-theta-hard-coded": torch.zeros(2)} for test in KNOWN}
    naming_of_run = held(known)
    for test in KNOWN:
        naming_of_run._known[test]["rope-theta-hard-coded"].append(naming.fingerprint([torch.ones(2)]))
        naming_of_run.note(test, naming.fingerprint([torch.ones(2)]))
    assert [named.id for named in naming_of_run.named("rope")] == ["rope-theta-hard-coded"]
