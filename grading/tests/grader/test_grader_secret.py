"""The secret: what comes from it, where it must not show, and what it takes from hard-coded answers."""

import pytest
from walls import SANDBOXED

from grading.grader import exam, secret
from grading.grader.batch import Batch, prepare
from grading.grader.exam import PUBLIC_ANSWERS, Exam
from grading.grader.fork_server import ForkServer
from grading.grader.student_files import Intake, take_in
from grading.paths import REFERENCE
from grading.proof.attacks import parrot

SECRET = b"the secret of these tests"


def test_the_seed_follows_the_secret_and_is_never_the_public_one():
    seeds = {secret.private_seed(f"some long secret {n}".encode()) for n in range(50)}
    assert len(seeds) == 50 and 0 not in seeds
    assert secret.private_seed(SECRET) == secret.private_seed(SECRET)
    assert max(seeds) + 20_000 < 2**63


def test_a_secret_comes_from_a_file_or_a_variable(tmp_path, monkeypatch):
    (tmp_path / "secret").write_text("  0123456789abcdef\n", encoding="utf-8")
    monkeypatch.setenv("WEEK_SECRET", "fedcba9876543210")
    assert secret.read_secret(str(tmp_path / "secret")) == b"0123456789abcdef"
    assert secret.read_secret("WEEK_SECRET") == b"fedcba9876543210"


@pytest.mark.parametrize("content", ["", "short"])
def test_a_short_secret_is_refused_and_not_repeated(tmp_path, content):
    (tmp_path / "secret").write_text(content, encoding="utf-8")
    with pytest.raises(secret.SecretError) as raised:
        secret.read_secret(str(tmp_path / "secret"))
    assert "short" not in str(raised.value)


def test_no_secret_is_refused():
    with pytest.raises(secret.SecretError, match="names no file and no environment variable"):
        secret.read_secret("NO_SUCH_VARIABLE")


@pytest.mark.parametrize("state", exam.LOST)
def test_how_a_worker_was_lost_is_not_told(state):
    """An exit code, a length or an exception's text could carry a number of the private run away."""
    private = {"outcome": state, "message": "exit code 97", "out_of_the_grader": True}
    assert exam._message(private, None) == exam.LOST[state]


def test_a_part_that_is_torchs_own_gives_no_points():
    tests = [
        {"name": f"test_{part}_{what}", "part": part, "state": state, "earned": earned, "message": ""}
        for part, what, state, earned in (
            ("rmsnorm", "is_your_own", "failed", 0), ("rmsnorm", "divides", "passed", 3),
            ("rope", "turns", "passed", 2), ("attention", "is_your_own", "passed", 0),
            ("attention", "attends", "passed", 4),
        )
    ]  # fmt: skip
    exam._void_ready_made(tests)
    assert [test["earned"] for test in tests] == [0, 0, 2, 0, 4]
    assert [test["message"] for test in tests] == ["", exam.READY_MADE, "", "", ""]


PARTS = {  # file -> the parts of the week that are asked of it
    "modules": ("rmsnorm", "swiglu", "backward"),
    "rope": ("rope",),
    "attention": ("attention", "qknorm", "softcap", "window", "cache"),
    "model": ("block",),
    "budget": ("budget", "recipe"),
    "objectives": ("objectives",),
}


@pytest.fixture(scope="module")
def parrots(tmp_path_factory):
    """{name: result} of submissions that know all public answers by heart: in one file each, and in all.

    "public" is the last of them, asked what it knows.
    """
    room = tmp_path_factory.mktemp("parrots")
    learnt, tables = parrot.learn(room)
    right = take_in(REFERENCE).texts
    intakes = [Intake(module, {**right, module: learnt[module]}, beside=tables) for module in PARTS]
    intakes += [Intake("all", learnt, beside=tables)]
    private = Batch(prepare(secret.private_seed(SECRET), room), SECRET, SANDBOXED)
    public = Batch(Exam(0, PUBLIC_ANSWERS), SECRET, SANDBOXED)
    with ForkServer(SANDBOXED, 2) as fork_server:
        found = {intake.name: result for intake, result in private.results(intakes, fork_server)}
    with ForkServer(SANDBOXED, 1) as fork_server:
        [(_, found["public"])] = public.results(intakes[-1:], fork_server)
    return found


def points(result, parts):
    return sum(test["earned"] for test in result["tests"] if test["part"] in parts)


@pytest.mark.proof
def test_hard_coded_answers_to_the_public_tests_earn_nothing(parrots):
    assert points(parrots["public"], sum(PARTS.values(), ())) > 130  # of 162: gradients and caches it can't repeat
    assert parrots["all"]["points"] == 0
    assert any("public tests only" in test["message"] for test in parrots["all"]["tests"])


@pytest.mark.parametrize("module", PARTS)
def test_one_file_of_hard_coded_answers_earns_nothing_in_its_parts(parrots, module):
    result = parrots[module]
    assert result["state"] == "graded", result["error"]
    earned = {test["name"]: test["earned"] for test in result["tests"] if test["part"] in PARTS[module]}
    assert {name: number for name, number in earned.items() if number} == {}
    others = {"budget": ("rmsnorm", "rope", "attention"), "objectives": ("rmsnorm", "rope", "attention")}
    assert all(points(result, (part,)) > 0 for part in others.get(module, ()))


def test_neither_secret_nor_seed_is_in_a_result(parrots):
    for text in (SECRET.decode(), str(secret.private_seed(SECRET))):
        assert text not in repr(parrots)
