"""Naming a mistake from its answers: right ones by name, unknown ones not at all, right code never."""

import shutil

import pytest
import torch

import naming
from grading.patches import REFERENCE, load_mistakes, materialise
from grading.runs import RunError, reports

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


def test_what_is_said():
    held = naming.Naming(known=False)
    held._known = {"test_rope_a": {"rope-theta-hard-coded": naming.fingerprint([torch.ones(2)])}}
    held.note("test_rope_a", naming.fingerprint([torch.ones(2)]))
    first, *rest = naming.sentences(held, "rope")
    assert "(1 of 1 red tests answer exactly so)" in first and rest[-1].endswith("hint rope-theta-hard-coded")
    held.note("test_rope_b", naming.fingerprint([torch.zeros(2)]))
    assert list(naming.sentences(held, "rope"))[-1].startswith("rope: and something else that we don't know, in 1 of 2")
    other = naming.Naming(known=False)
    other._known = held._known
    other.note("test_rope_b", naming.fingerprint([torch.zeros(2)]))
    (only,) = naming.sentences(other, "rope")
    assert only.startswith("rope: not one of the mistakes that we know, or several at once.")
