"""What drives a question is not student code's to patch, and what one submission uses leaves the others theirs."""

import argparse
import errno

import pytest
from walls import SANDBOXED

from grading.grader import allowance, plugin, results, run
from grading.grader.allowance import Allowance
from grading.grader.batch import Batch, prepare
from grading.grader.fork_server import ForkServer
from grading.grader.limits import Limits
from grading.grader.results import ResultsFolder
from grading.grader.student_files import Intake, take_in
from grading.paths import REFERENCE

SECRET = b"the secret of these tests"
PATCHED = """

import nanolm.cache as _cache
import nanolm.asking.counting as _counting
import nanolm.asking.subject as _subject


def _at_once(part, args, chunks, window=None):
    whole = part._module(*args)
    kept = [(torch.zeros(2, 2, 7, 8), torch.zeros(2, 2, 7, 8))]
    return _subject.Outcome(whole, [], cache=kept, cache_length=sum(chunks))


_subject.in_chunks = _subject.Part._cached = _at_once
_subject.Part.cached = lambda self, *args, chunks, window=None: _at_once(self, args, chunks, window)
_subject.Part.greedy = lambda self, tokens, count: [0] * count
_subject.token_by_token = lambda part, tokens, count: [0] * count
_cache.LayerCache.append = lambda self, k, v: (k, v)
_counting.Counting.counts = property(lambda self: dict.fromkeys(_counting.COUNTS, 0), lambda self, value: None)
"""


def graded(texts, tmp_path, *tests):
    batch = Batch(prepare(4711, tmp_path, tests), SECRET, SANDBOXED)
    with ForkServer(batch.sandboxed, 1) as fork_server:
        ((_, result),) = batch.results([Intake("patched", texts)], fork_server)
    assert result["state"] == "graded", result["error"]
    return result


def test_an_attention_without_a_cache_earns_nothing_by_a_patched_harness(tmp_path):
    texts = take_in(REFERENCE).texts
    attention = texts["attention"] + "\n\n_forward = GroupedQueryAttention.forward\n"
    attention += "GroupedQueryAttention.forward = lambda self, x, cos, sin, cache=None: _forward(self, x, cos, sin)\n"
    for patch in ("", PATCHED):
        result = graded(texts | {"attention": attention + patch}, tmp_path, "tests/test_cache.py")
        assert [test["name"] for test in result["tests"] if test["earned"]] == [], patch


def test_what_is_measured_inside_is_never_worth_a_point(tmp_path):
    result = graded(take_in(REFERENCE).texts, tmp_path, "tests/test_memory.py")
    assert {test["points"] for test in result["tests"]} == {0}
    assert "advice" not in str(vars(parsed("submissions", "--out", "o", "--secret", "S")))


def parsed(*arguments):
    parser = argparse.ArgumentParser()
    run.add_arguments(parser)
    return parser.parse_args(arguments)


class Clock:
    now = 0.0

    def monotonic(self):
        return self.now


def test_a_part_keeps_its_own_seconds_whatever_the_others_use(monkeypatch):
    monkeypatch.setattr(allowance, "time", Clock())
    limits = Limits(call=10, part=30, submission=60, reserve=4, patience=4)
    left = Allowance(limits, parts=5)
    for part in ("rmsnorm", "attention", "block"):
        while (seconds := left.left("private", part)) > 0:
            left.use("private", part, seconds)
    assert left.left("private", "rope") == 4  # which was never asked before
    left.use("private", "rope", 4)
    assert left.left("private", "rope") == 0 and left.left("public", "rope") == 4


def test_all_that_a_submission_can_use_has_the_end_that_is_said(monkeypatch):
    monkeypatch.setattr(allowance, "time", Clock())
    limits, total = Limits(), 0.0
    left = Allowance(limits, parts=16)
    for name in ("private", "public"):
        for part in range(16):
            while (seconds := left.left(name, part)) > 0:
                left.use(name, part, seconds)
                total += seconds
    assert limits.submission < total <= limits.most(16)


def test_by_the_clock_it_ends_too(monkeypatch):
    monkeypatch.setattr(allowance, "time", Clock())
    left = Allowance(Limits(), parts=16)
    allowance.time.now = Limits().longest(16)
    assert left.left("private", "rope") <= 0


class Config:
    """tests/conftest.py's part of a config, whose naming breaks on what a red test has heard."""

    def __init__(self):
        self.heard = []

    def entry_of(self, item, student, error):
        if error is not None and student.transcript:
            raise OverflowError("an answer that can't be named")
        return {"outcome": "failed" if error else "passed", "message": str(error)}


def test_an_answer_that_breaks_its_naming_is_a_failed_test_and_no_fault_of_the_graders():
    tests = plugin.GraderPlugin(None)
    student = argparse.Namespace(transcript=[object()], asked={})
    tests.workers = argparse.Namespace(enter=lambda part: None, settle=lambda: None, lost=None)
    tests._config = Config()
    tests._config.new_subject = lambda: student

    def wrong(student):
        raise AssertionError("no")

    entry = tests._entry(argparse.Namespace(part="rope", function=wrong))
    assert entry["outcome"] == "failed"


def full(*args):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_keeps_the_old_result_and_is_one_sentence(tmp_path, monkeypatch, capsys):
    results_folder = ResultsFolder(tmp_path / "results")
    results_folder.put("ada", {"submission": "ada", "state": "graded", "points": 1})
    monkeypatch.setattr(results.os, "fsync", full)
    with pytest.raises(OSError):
        results_folder.put("ada", {"submission": "ada", "state": "graded", "points": 2})
    assert [result["points"] for result in results_folder.all(["ada"])] == [1]
    assert not [path for path in (tmp_path / "results").rglob(".*.new")]
    monkeypatch.setattr(run, "grade_folder", full)
    monkeypatch.setenv("WEEK_SECRET", "0123456789abcdef")
    args = parsed(str(tmp_path), "--out", str(tmp_path / "results"), "--secret", "WEEK_SECRET")
    args.unsandboxed = not SANDBOXED
    assert run.run(args) == 1
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert said.startswith("Nothing more is graded: No space left on device.") and "run again" in said
