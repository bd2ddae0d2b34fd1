"""`python -m nanolm hint`: a little more each time, for a test or a mistake."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nanolm.__main__ import main
from nanolm.impl import ROOT
from nanolm.student.hint import command, hint


def test_a_mistake_has_three_hints(capsys):
    said = []
    for level in ("1", "2", "3"):
        assert main(["hint", "rmsnorm-centers", level]) == 0
        said.append(capsys.readouterr().out)
    assert len(set(said)) == 3 and all(f"Hint {n} of 3" in text for n, text in enumerate(said, 1))
    assert "python -m nanolm hint rmsnorm-centers 2" in said[0] and "More:" not in said[2]
    assert "notebooks/02_rmsnorm.ipynb" in said[0]


def test_a_test_of_several_mistakes_asks_which():
    entries = [
        {"id": "a", "test": "test_x", "symptom": "s", "cause": "Is it a?", "hints": ["1", "2", "3"], "notebook": "n"},
        {"id": "b", "test": "test_x", "symptom": "s", "cause": "Is it b?", "hints": ["1", "2", "3"], "notebook": "n"},
        {"id": "c", "test": "test_y", "symptom": "S.", "cause": "Is it c?", "hints": ["1", "2", "3"], "notebook": "n"},
    ]
    lines = "\n".join(hint(entries, "test_x", 1))
    assert "Is it a?" in lines and "python -m nanolm hint b" in lines and "Hint 1" not in lines
    assert "Hint 2 of 3: 2" in hint(entries, "test_y", 2)


@pytest.mark.parametrize("module", ["nanolm.student.hint", "grading.week.autograde.wiring"])
def test_a_command_that_runs_no_student_code_does_not_wait_for_torch(module):
    code = f"import sys, {module}; print('torch' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, encoding="utf-8")
    assert found.stdout == "False\n", found.stderr


def test_an_unknown_name_is_one_sentence(capsys):
    assert main(["hint", "test_nothing"]) == 1
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.startswith("There is no hint on 'test_nothing'")


def test_a_command_is_offered_only_where_a_hint_is_there():
    assert command("test_rmsnorm_does_not_center").endswith("hint test_rmsnorm_does_not_center")
    assert command("rmsnorm-centers").endswith("hint rmsnorm-centers")
    assert command("test_rmsnorm_returns_the_shape_of_its_input") == ""


def test_a_fourth_hint_is_refused(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["hint", "rmsnorm-centers", "4"])
    assert stopped.value.code == 2 and "choose from" in capsys.readouterr().err


def test_a_tests_name_may_be_as_pytest_prints_it(capsys):
    assert main(["hint", "test_rmsnorm_does_not_center"]) == 0
    plain = capsys.readouterr().out
    assert main(["hint", "tests/test_rmsnorm.py::test_rmsnorm_does_not_center"]) == 0
    assert capsys.readouterr().out == plain


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_one_sentence():
    said = _hint_into("> /dev/full")
    assert said.returncode == 1 and said.stderr == "The output can't be written: No space left on device.\n"


@pytest.mark.skipif(os.name == "nt", reason="needs a shell with pipes")
def test_who_has_read_enough_may_close_the_pipe():
    assert _hint_into("| true").stderr == ""


def _hint_into(where):
    command = f"'{sys.executable}' -m nanolm hint rmsnorm-centers {where}"
    return subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, text=True, encoding="utf-8")
