"""The measuring code of the timing tests works, on a CPU, in small sizes and with the gates off."""

import ast
import math

import pytest
import torch
import warm
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from grading.paths import REFERENCE, ROOT
from nanolm.asking import timing
from nanolm.asking.clock import Clock, Row, machine, table
from nanolm.asking.subject import Subject
from nanolm.errors import ContractError, StudentError
from nanolm.impl import Implementation

CPU = torch.device("cpu")
REASON = "the clock needs a CUDA device, and torch finds none here"


@pytest.fixture(scope="module")
def bench():
    clock = Clock(CPU, pairs=3, shortest=0.0)
    return timing.Bench(Implementation("reference", REFERENCE), CPU, timing.SMALL, clock)


@pytest.fixture(scope="module")
def rows(bench):
    return {measurement.__name__: measurement(bench) for measurement in timing.MEASUREMENTS}


@pytest.mark.parametrize("name", [measurement.__name__ for measurement in timing.MEASUREMENTS])
def test_every_measurement_gives_finite_positive_numbers(rows, name):
    row = rows[name]
    assert all(math.isfinite(number) and number > 0 for number in (row.a_seconds, row.b_seconds, row.ratio))
    assert row.expected and (row.gate is None or row.gate >= 2)


def test_the_table_has_every_row(rows):
    lines = list(table(rows.values()))
    assert len(lines) == 1 + len(timing.MEASUREMENTS)
    assert len({row.name for row in rows.values()}) == len(rows)
    assert all(line.startswith(row.name) for line, row in zip(lines[1:], rows.values(), strict=True))


def test_every_measurement_is_a_test_of_the_week():
    tree = ast.parse((ROOT / "tests" / "test_timing_cuda.py").read_text(encoding="utf-8"))
    asked = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert {measurement.__name__ for measurement in timing.MEASUREMENTS} | {"forward_without_waiting"} <= asked


def test_a_forward_that_waits_for_nothing_gives_logits(bench):
    assert timing.forward_without_waiting(bench).shape == (1, timing.SMALL.T, timing.SMALL.V)


def test_the_peer_does_as_much_work_as_the_attention(bench):
    counts = []
    for run in (timing._attention(bench), timing._peer(bench)):
        with FlopCounterMode(display=False) as counter, torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
            run()
        counts.append(counter.get_total_flops())
    assert counts[0] == counts[1] > 0


def test_a_row_under_its_gate_is_not_fast():
    row = Row("decode", "A", "B", 0.001, 0.0015, 1.5, "2 and more", gate=2.0)
    assert not row.is_fast and "at least 2: NO" in list(table([row]))[1]


def test_the_clock_repeats_short_work():
    calls = []
    row = Clock(CPU, pairs=2, shortest=0.01).row("x", ("A", lambda: calls.append(1)), ("B", lambda: None), "1")
    assert row.a_seconds < 0.001 and len(calls) > 100


def test_an_attention_without_a_cache_has_no_decode_step(bench):
    class Forgetful:
        def __getattr__(self, name):
            return getattr(bench.impl, name)

        class GroupedQueryAttention(torch.nn.Linear):
            def __init__(self, cfg, layer=0):
                super().__init__(cfg.D, cfg.D)

            def forward(self, x, cos, sin, cache=None):
                return super().forward(x)

    forgetful = timing.Bench(Forgetful(), CPU, timing.SMALL, bench.clock)
    with pytest.raises(ContractError, match="no cached step"):
        timing.decode_falls_with_G(forgetful)


def test_a_subject_hands_an_exception_on_as_the_students():
    def broken(bench):
        raise RuntimeError("called a synchronizing CUDA operation")

    student = Subject(Implementation("reference", REFERENCE))
    with pytest.raises(StudentError, match="synchronizing"):
        student.timed(broken, CPU, timing.SMALL)


def test_the_machine_is_named():
    assert "cores" in machine() and torch.__version__ in machine()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here: the timing tests run")
def test_without_a_gpu_there_is_one_reason():
    run = warm.python("-m", "pytest", "tests/test_timing_cuda.py", "-q", "-rs", "-p", "no:cacheprovider")
    (skipped,) = (line for line in run.stdout.splitlines() if line.startswith("SKIPPED"))
    assert skipped.startswith("SKIPPED [1] tests/test_timing_cuda.py") and skipped.endswith(REASON)
