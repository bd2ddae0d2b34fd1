"""Time that student code uses is the processor's, with an end by the clock; memory has an end for all together."""

import os
import time
from pathlib import Path

import pytest
from walls import SANDBOXED

from grading.grader import sandbox, stopwatch
from grading.grader.batch import Batch, prepare
from grading.grader.fork_server import ForkServer
from grading.grader.inside import wire
from grading.grader.limits import Limits
from grading.grader.lost_worker import WorkerLost
from grading.grader.student_files import Intake, take_in
from grading.paths import REFERENCE

CODE = """
import time
import torch
def rope_frequencies(what, amount):
    end = time.process_time() + amount
    while what == "works" and time.process_time() < end:
        pass
    if what == "sleeps":
        time.sleep(amount)
    return float(torch.ones(amount << 18).sum()) if what == "fills" else 1.0
"""
LIMITS = Limits(call=1.0, patience=3.0, memory=1 << 30)


class Machine:
    """A clock and a processor that go as a test says."""

    def __init__(self, monkeypatch):
        self.clock, self.processor, self.turns = 0.0, 0.0, 0.0
        monkeypatch.setattr(stopwatch.time, "monotonic", lambda: self.clock)
        monkeypatch.setattr(stopwatch, "cpu_seconds", lambda pid: self.processor)
        monkeypatch.setattr(stopwatch, "waiting_seconds", lambda pid: self.turns)

    def run(self, clock, processor, turns=0.0):
        """So many seconds by the clock, so many of them at work, and so many in wait of a turn."""
        self.clock += clock
        self.processor += processor
        self.turns += turns


def test_on_a_busy_machine_a_call_has_its_seconds_of_the_processor(monkeypatch):
    machine = Machine(monkeypatch)
    watch = stopwatch.Stopwatch(1, seconds=10, patience=4)
    machine.run(clock=1, processor=0.5, turns=0.5)
    assert watch.left() == 9.5
    machine.run(clock=29, processor=8.5, turns=20.5)
    assert watch.left() == 1 and watch.used() == 9
    machine.run(clock=2, processor=2)
    assert watch.left() <= 0


def test_who_sleeps_uses_up_the_seconds_of_the_clock(monkeypatch):
    machine = Machine(monkeypatch)
    watch = stopwatch.Stopwatch(1, seconds=10, patience=4)
    assert watch.left() == stopwatch.LOOK  # then it is looked at
    machine.run(clock=0.1, processor=0)
    assert watch.left() > 9
    machine.run(clock=9.5, processor=0)
    assert 0 < watch.left() < 1
    machine.run(clock=1, processor=0)
    assert watch.left() <= 0


def test_what_an_ended_process_has_used_is_not_forgotten(monkeypatch):
    machine = Machine(monkeypatch)
    watch = stopwatch.Stopwatch(1, seconds=10, patience=4)
    machine.run(clock=1, processor=0)
    assert watch.left() > 9
    machine.run(clock=10, processor=0)
    assert watch.left() <= 0
    machine.processor = machine.turns = None
    assert watch.used() >= 10


def test_many_threads_in_wait_of_a_turn_are_ended_by_patience(monkeypatch):
    machine = Machine(monkeypatch)
    watch = stopwatch.Stopwatch(1, seconds=10, patience=4)
    machine.run(clock=1, processor=0)
    assert watch.left() > 9
    machine.run(clock=38, processor=0, turns=600)
    assert watch.left() > 0
    machine.run(clock=2, processor=0, turns=600)
    assert watch.left() <= 0


def test_where_the_processor_is_not_known_the_clock_counts(monkeypatch):
    machine = Machine(monkeypatch)
    monkeypatch.setattr(stopwatch, "cpu_seconds", lambda pid: None)
    watch = stopwatch.Stopwatch(None, seconds=10, patience=4)
    machine.run(clock=11, processor=0)
    assert watch.left() <= 0


@pytest.fixture(scope="module")
def ask():
    """A new worker is asked one thing; its answer, or the state that it ends in, and the group's folders."""
    with sandbox.Zygote(SANDBOXED, LIMITS) as zygote:

        def of(what, amount, seconds=LIMITS.call):
            worker, tensors = zygote.start({"rope.py": CODE}), []
            args, kwargs = wire.encode((what, amount), tensors), wire.encode({}, tensors)
            question = {"do": "function", "name": "rope_frequencies", "args": args, "kwargs": kwargs}
            try:
                head, found = worker.ask(question, tensors, seconds)
                return wire.decode(head["answer"], found)["output"]
            except WorkerLost as lost:
                return lost.state
            finally:
                worker.close()

        of.group = zygote.group
        yield of


def test_the_processors_time_of_a_worker_is_seen(ask):
    assert ask("works", 0.3) == 1.0
    assert ask("works", 5.0) == "timed out"


def test_sleep_costs_as_much_as_work(ask):
    assert ask("sleeps", 0.3) == 1.0
    assert ask("sleeps", 30.0) == "timed out"


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="this system does not say who waits for a turn")
def test_turns_waited_for_are_read_from_the_system():
    assert 0 <= stopwatch.waiting_seconds(os.getpid()) < time.monotonic()
    assert stopwatch.waiting_seconds(2**22 + 1) is None  # no process has this number


GREEDY = {  # small answers of which the tests would make gigabytes: (module, code, a test)
    "a list that is multiplied": (
        "budget", 'def kv_cache_bytes_per_token(cfg):\n    return ["x" * 200] * 1000',
        "test_budget.py::test_budget_cache_at_32k_context",
    ),
    "a column and a row": (
        "rope", "def apply_rope(x, cos, sin, calls=[]):\n    calls.append(x)\n"
        "    return torch.ones((40_000, 1) if len(calls) % 2 else (1, 40_000))",
        "test_rope.py::test_rope_score_changes_with_distance",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", GREEDY)
def test_an_answer_that_would_fill_the_tests_own_memory_is_a_failed_test(name, tmp_path):
    module, code, test = GREEDY[name]
    texts = take_in(REFERENCE).texts
    intake = Intake("greedy", texts | {module: f"{texts[module]}\n\n{code}\n"})
    batch = Batch(prepare(7, tmp_path, (f"tests/{test}",)), b"a secret of this test", SANDBOXED)
    with ForkServer(batch.sandboxed, 1) as fork_server:
        ((_, result),) = batch.results([intake], fork_server)
    assert result["state"] == "graded", result["error"]
    assert [shown["state"] for shown in result["tests"]] == ["failed"]


def test_memory_that_is_filled_beyond_the_groups_limit_is_said(ask):
    if not {"memory", "unified"} & set(ask.group.folders):
        pytest.skip("no control group for memory can be made here")
    assert ask("fills", 2048, seconds=30.0) == "out of memory"  # on a busy machine filling 1 GiB takes over a second
    assert ask("works", 0.0) == 1.0  # the zygote lives
