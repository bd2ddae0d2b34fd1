"""Made-up bytes find no fault in what the trusted side reads of a submission, and one that is planted is found."""

import argparse

import pytest

from grading.grader.inside import wire
from grading.proof import fuzz


def test_ten_seconds_find_nothing(capsys):
    assert fuzz.run(argparse.Namespace(seconds=10, seed=0)) == 0, capsys.readouterr().out


def test_a_planted_fault_is_found(monkeypatch, capsys):
    monkeypatch.setattr(wire, "DEPTH_LIMIT", "none")  # as if a comparison had been forgotten
    assert fuzz.run(argparse.Namespace(seconds=60, seed=0)) == 1
    assert "frame, seed" in capsys.readouterr().out


@pytest.mark.parametrize("name", fuzz.TARGETS)
def test_a_target_takes_what_is_as_agreed(name):
    target, seeds = fuzz.TARGETS[name]
    for data in seeds:
        target(data)
