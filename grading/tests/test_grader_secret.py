"""The secret: what comes from it, where it must not show, and what it takes from hard-coded answers."""

import pytest
import torch

from draw import Draw
from grading.grader import sandbox, secret
from grading.grader.batch import Batch, prepare
from grading.grader.intake import Intake
from grading.grader.session import PUBLIC_ANSWERS, Exam
from grading.patches import REFERENCE
from nanolm.impl import load

SECRET = b"the secret of these tests"
SEEDED = ("unit_rms", "does_not_center", "scales_with_gamma", "worked_example_3_4", "gamma_starts_at_one")
TESTS = ("tests/test_modules.py", "-k", " or ".join(SEEDED))


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


def parrot():
    """A modules.py that knows the answers to the public inputs, as bytes, and computes nothing."""
    norm = load(str(REFERENCE)).RMSNorm
    size = 10.0 ** torch.arange(8) / 1000
    inputs = [
        Draw(2).normal(8, 8, mean=3.0) * size[:, None],
        Draw(3).normal(2, 8, 8, mean=3.0) * size[:, None],
        Draw(4).normal(4, 32, mean=5.0),
        Draw(5).normal(3, 7),
        torch.tensor([[3.0, 4.0]]),
    ]
    known = {x.numpy().tobytes(): (norm(x.shape[-1], 1e-12)(x)).detach().tolist() for x in inputs}
    return f"""
import torch
from torch import nn
KNOWN = {known!r}
class RMSNorm(nn.Module):
    def __init__(self, D, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(D))
    def forward(self, x):
        found = KNOWN.get(x.numpy().tobytes())
        return x if found is None else torch.tensor(found) * self.weight
"""


def test_hard_coded_answers_to_the_public_tests_earn_nothing(tmp_path):
    intake = Intake("parrot", {"modules": parrot()})
    sandboxed = sandbox.bubblewrap() is not None
    public = Batch(Exam(0, PUBLIC_ANSWERS, TESTS), SECRET, sandboxed)
    private = Batch(prepare(secret.private_seed(SECRET), tmp_path, TESTS), SECRET, sandboxed)
    [(_, known)], [(_, unknown)] = public.results([intake], 1), private.results([intake], 1)
    assert known["points"] == sum(test["points"] for test in known["tests"]) == 5
    assert unknown["points"] == 0
    assert "public tests only" in unknown["tests"][0]["message"]
    for text in (SECRET.decode(), str(secret.private_seed(SECRET))):
        assert text not in repr(unknown)
