"""A test means the same on both sides: in process for the student, through a worker for the grade."""

import pytest
import reports_apart
from walls import SANDBOXED, needs_walls

from grading.demo import samples
from grading.grader.batch import Batch
from grading.grader.exam import PUBLIC_ANSWERS, Exam
from grading.grader.fork_server import ForkServer
from grading.grader.student_files import Intake, take_in
from grading.paths import REFERENCE
from grading.proof.bank import SLOW, Replacement, Variant, load_mistakes, load_variants, materialise

pytestmark = pytest.mark.proof

DRAWS = "attn-dropout-active-in-eval"  # its answers hang on numbers that it draws itself
SLOW_ONE = "slow-loop-over-heads"  # right, and gets advice
MISTAKES = ("rmsnorm-wrong-axis", "rmsnorm-divides-by-std", DRAWS)  # and one of every other part

# The grader has modules built and loaded together with the first question to them. What fails then must look the same.
RAISES = """
def __init__(self, *sizes, **more):
    super().__init__()
    raise {}("this module can't be built")
"""
ANOTHER_WEIGHT = """
def __init__(self, D, *more, **others):
    super().__init__()
    self.weight, self.eps = nn.Parameter(torch.ones({})), 1e-5
"""
BROKEN_INIT = {
    "init-raises": ("modules.py", "RMSNorm", RAISES.format("ValueError")),
    "init-is-no-stub": ("modules.py", "SwiGLU", RAISES.format("NotImplementedError")),
    "init-raises-in-attention": ("attention.py", "GroupedQueryAttention", RAISES.format("ValueError")),
    "init-is-no-stub-in-the-block": ("model.py", "Block", RAISES.format("NotImplementedError")),
    "init-has-a-longer-weight": ("modules.py", "RMSNorm", ANOTHER_WEIGHT.format("D + 1")),
    "init-has-no-weights": ("modules.py", "SwiGLU", ANOTHER_WEIGHT.format("0")),
}


@pytest.fixture(scope="module")
def states(tmp_path_factory):
    """{submission: ({test: (state, mistake, message)} in process, the same through a worker)}."""
    room = tmp_path_factory.mktemp("both")
    folders = {name: samples.folder(name) for name in samples.SAMPLES} | {"reference": REFERENCE}
    mistakes = load_mistakes()
    chosen = {mistake.part: mistake for mistake in mistakes.values()}  # the last of each part
    for program in (*chosen.values(), *(mistakes[name] for name in MISTAKES), load_variants(SLOW)[SLOW_ONE]):
        materialise(REFERENCE, [program], room / program.id)
        folders[program.id] = room / program.id
    for name, (file, module, code) in BROKEN_INIT.items():
        edit = Replacement(file, f"{module}.__init__", code)
        materialise(REFERENCE, [Variant(name, name, (edit,), "all", "")], room / name)
        folders[name] = room / name
    here = in_process(folders)
    batch = Batch(Exam(0, PUBLIC_ANSWERS), b"no secret: public", SANDBOXED)
    intakes = [take_in(folder) for folder in folders.values()]
    with ForkServer(batch.sandboxed, 2) as fork_server:
        results = list(batch.results(intakes, fork_server))
    there = {
        intake.name: {test["name"]: seen(test["state"], test["mistake"], test["message"]) for test in result["tests"]}
        for intake, result in results
    }
    return {name: (here[name], there[folder.name]) for name, folder in folders.items()}


def seen(state, mistake, message):
    """What must be equal: of other tests than the red ones the grader says less."""
    return state, mistake, message if state == "failed" else ""


def in_process(folders):
    """{submission: {test: (state, mistake, message)}} of the students' own way."""
    return {
        name: {test["name"]: seen(test["outcome"], test["mistake"], test["message"]) for test in tests}
        for name, tests in reports_apart.reports(folders).items()
    }


def test_every_test_has_the_same_state_mistake_and_message_both_ways(states):
    assert len(states) >= 8
    for name, (here, there) in states.items():
        assert set(here) == set(there)
        assert {test: (here[test], there[test]) for test in here if here[test] != there[test]} == {}, name


def test_a_mistake_that_draws_numbers_is_named_both_ways(states):
    for side in states[DRAWS]:
        assert DRAWS in {mistake for _, mistake, _ in side.values()}


def test_the_comparison_has_seen_every_state(states):
    met = {state for _, there in states.values() for state, _, _ in there.values()}
    assert {"passed", "failed", "not started", "waiting", "advice"} <= met
    assert any(mistake for _, there in states.values() for _, mistake, _ in there.values())


def result_of(name, changed):
    """The result of the reference with these files changed, {module: how its text changes}."""
    texts = take_in(REFERENCE).texts
    texts |= {module: change(texts[module]) for module, change in changed.items()}
    batch = Batch(Exam(0, PUBLIC_ANSWERS), b"no secret: public", SANDBOXED)
    with ForkServer(batch.sandboxed, 1) as fork_server:
        ((_, result),) = batch.results([Intake(name, texts)], fork_server)
    return result


def by_the_folders_name(text):
    return text.replace("\nfrom .", "\nfrom exercises_en.")


HABITS = {
    "files import each other by the folder's name": dict.fromkeys(("attention", "model"), by_the_folders_name),
    "torch.compile": {"modules": lambda text: text + "\n\nSwiGLU.forward = torch.compile(SwiGLU.forward)\n"},
}


@pytest.mark.parametrize("habit", HABITS)
def test_right_code_with_this_habit_has_every_point(habit):
    result = result_of("habit", HABITS[habit])
    assert [test["name"] for test in result["tests"] if test["state"] != "passed"] == []


BORROWED = """

def count_parameters(cfg):
    from nanolm.recipe import ledger

    return ledger.parameters(cfg).total
"""


@needs_walls
def test_the_courses_own_count_of_parameters_is_not_there():
    result = result_of("ledger", {"budget": lambda text: text + BORROWED})
    said = [test["message"] for test in result["tests"] if test["part"] == "budget" and test["state"] == "failed"]
    assert any("RuntimeError" in message for message in said)


@needs_walls
def test_an_import_of_it_that_was_left_over_costs_nothing():
    result = result_of("left-over", {"budget": lambda text: "from nanolm.recipe.ledger import parameters\n" + text})
    assert {test["state"] for test in result["tests"]} == {"passed"}
