"""Slow but right: every point is earned, and exactly the question that is meant gives its advice."""

from types import SimpleNamespace

import pytest
import reports_apart
import torch

from grading.grader.remote import RemotePart
from grading.paths import REFERENCE
from grading.proof.bank import SLOW, load_mistakes, load_variants, materialise
from grading.proof.marks import Marks, core_and_bonus
from nanolm.asking.counting import COUNTS, Counting

pytestmark = pytest.mark.proof

PROGRAMS = load_variants(SLOW)
EXPANDED = "gqa-cache-stores-expanded-heads"
REPLACED = "attn-shows-its-last-keys"


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    room = tmp_path_factory.mktemp("slow")
    for program in (*PROGRAMS.values(), load_mistakes()[EXPANDED], load_variants()[REPLACED]):
        materialise(REFERENCE, [program], room / program.id)
    return reports_apart.reports({path.name: path for path in room.iterdir()} | {"reference": REFERENCE}, "tests")


def names(tests, *outcomes):
    return {test["name"] for test in tests if test["outcome"] in outcomes}


def test_the_reference_needs_no_advice(reports):
    assert names(reports["reference"], "passed") == {test["name"] for test in reports["reference"]}


def test_every_question_has_its_program(reports):
    questions = {test["name"] for test in reports["reference"] if test["part"] == "memory"}
    assert questions == {program.advice for program in PROGRAMS.values()}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_slow_program_passes_all_and_hears_one_advice(reports, name):
    tests = reports[name]
    assert names(tests, "advice") == {PROGRAMS[name].advice}
    assert names(tests, "failed", "waiting", "not started") == set()
    full = core_and_bonus(reports["reference"])
    assert core_and_bonus(tests) == full and full[0] == Marks(100, 100)


def test_a_cache_of_N_heads_is_told_apart_by_its_question(reports):
    assert "test_cache_stores_K_heads" in names(reports[EXPANDED], "failed")
    assert {test["mistake"] for test in reports[EXPANDED] if test["outcome"] == "failed"} == {EXPANDED}
    assert names(reports[EXPANDED], "advice", "waiting") == set()
    assert core_and_bonus(reports[EXPANDED])[0] == Marks(100, 100)


def test_what_the_next_call_replaces_is_not_left_behind(reports):
    assert "test_memory_forward_leaves_nothing_behind" in names(reports[REPLACED], "passed")
    assert names(reports[REPLACED], "failed", "waiting", "not started") == set()


def test_by_configuration_a_question_gives_bonus_points(tmp_path):
    materialise(REFERENCE, [PROGRAMS["slow-loop-over-heads"]], tmp_path)
    found = reports_apart.reports({"slow": tmp_path}, "tests/test_memory.py", "--advice-points=2")["slow"]
    questions = len({program.advice for program in PROGRAMS.values()})
    assert core_and_bonus(found) == (Marks(0, 0), Marks(2 * (questions - 1), 2 * questions))


def counted_by_a_worker_that_says(answer):
    def refuse(sentence):
        raise ValueError(sentence)

    subject = SimpleNamespace(ask=lambda *request, **more: answer, workers=SimpleNamespace(refuse=refuse))
    return RemotePart(subject, 1).counted()


def test_a_worker_can_answer_counts_and_nothing_else():
    right = dict.fromkeys(COUNTS, 3)
    assert counted_by_a_worker_that_says(right) == right
    for wrong in (None, {}, [3] * 6, right | {"more": 3}, right | {"bytes": True}, right | {"bytes": "3"}):
        with pytest.raises(ValueError, match="not a count"):
            counted_by_a_worker_that_says(wrong)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: torch.nn.functional.rms_norm(x, (4,)),
        lambda x: getattr(torch, "rms" + "_norm")(x, (4,)),
        lambda x: torch.ops.aten.rms_norm.default(x, [4]),
        lambda x: torch.nn.RMSNorm(4)(x),
    ],
)
def test_torchs_own_rmsnorm_is_seen_by_whatever_name_it_is_called(call):
    with Counting(torch.nn.Module()) as counting:
        call(torch.ones(2, 4))
    assert counting.counts["ready_made"] > 0
