"""Time that student code uses is the processor's, with an end by the clock; memory has an end for all together."""

import pytest

from grading.grader import sandbox, stopwatch
from grading.grader.inside import wire
from grading.grader.lost import WorkerLost

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
LIMITS = sandbox.Limits(call=1.0, patience=3.0, memory=1 << 30)


class Machine:
    """A clock and a processor that go as a test says."""

    def __init__(self, monkeypatch):
        self.clock, self.processor = 0.0, 0.0
        monkeypatch.setattr(stopwatch.time, "monotonic", lambda: self.clock)
        monkeypatch.setattr(stopwatch, "cpu_seconds", lambda pid: self.processor)

    def run(self, clock, processor):
        self.clock += clock
        self.processor += processor


def test_on_a_busy_machine_a_call_has_its_seconds_of_the_processor(monkeypatch):
    machine = Machine(monkeypatch)
    watch = stopwatch.Stopwatch(1, seconds=10, patience=4)
    machine.run(clock=30, processor=9)
    assert watch.left() == 1 and watch.used() == 9
    machine.run(clock=2, processor=2)
    assert watch.left() <= 0


def test_who_only_sleeps_is_ended_by_the_clock(monkeypatch):
    machine = Machine(monkeypatch)
    watch = stopwatch.Stopwatch(1, seconds=10, patience=4)
    machine.run(clock=39, processor=0)
    assert watch.left() > 0
    machine.run(clock=2, processor=0)
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
    with sandbox.Zygote(sandbox.bubblewrap() is not None, LIMITS) as zygote:

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


def test_sleep_costs_less_than_work(ask):
    assert ask("sleeps", 1.5) == 1.0
    assert ask("sleeps", 30.0) == "timed out"


def test_memory_that_is_filled_beyond_the_groups_limit_is_said(ask):
    if not {"memory", "unified"} & set(ask.group.folders):
        pytest.skip("no control group for memory can be made here")
    assert ask("fills", 2048, seconds=30.0) == "out of memory"  # on a busy machine filling 1 GiB takes over a second
    assert ask("works", 0.0) == 1.0  # the zygote lives
