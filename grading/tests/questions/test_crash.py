"""What is said of student code that raised: its line, the tensors in it, the axis that does not fit, once."""

import json
import os
import shutil

import pytest
import torch
import warm

from nanolm.asking.subject import Subject
from nanolm.errors import StudentError
from nanolm.impl import ROOT, Implementation

PROGRAMS = {
    "no transpose": ("q, k = torch.ones(2, 5, 8), torch.ones(2, 5, 8)\n    return q @ k",
                     "return q @ k", "q (2, 5, 8) fp32, k (2, 5, 8) fp32", "last axis of q: 8, axis -2 of k: 5"),
    "broadcast": ("y = torch.ones(3, 4).bfloat16()\n    return x + y",
                  "return x + y", "x (2, 5) fp32, y (3, 4) bf16", "axis -1: 5 in x, 4 in y"),
    "reshape": ("B = 2\n    return x.view(B, 7)", "return x.view(B, 7)", "x (2, 5) fp32, B = 2",
                "the sizes asked for multiply to 14, the tensor has 10 numbers"),
    "expand": ("return x.expand(2, 6)", "return x.expand(2, 6)", "x (2, 5) fp32", "axis 1: 6 wanted, 5 there"),
    "two lines": ("return (x\n        @ x)", "return (x @ x)", "x (2, 5) fp32",
                  "the left one's last axis is 5, the right one takes 2: is one of them to be transposed?"),
    "typo": ("return x.means(-1)", "return x.means(-1)", "x (2, 5) fp32", ""),
    "nothing came": ("y = None\n    return x + y", "return x + y", "x (2, 5) fp32, y is None", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_exception_shows_line_tensors_and_axis(name, tmp_path):
    body, line, tensors, axis = PROGRAMS[name]
    text = f"import torch\n\n\ndef repeat_kv(x, G):\n    {body}\n"
    (tmp_path / "attention.py").write_text(text, encoding="utf-8")
    for file in ("modules.py", "rope.py"):
        (tmp_path / file).write_text("", encoding="utf-8")
    with pytest.raises(StudentError) as raised:
        Subject(Implementation("it", tmp_path)).repeat_kv(torch.ones(2, 5), 2)
    error = raised.value
    assert (error.line, error.tensors, error.axis) == (line, tensors, axis)
    assert error.place.startswith("attention.py, line ") and error.place.endswith(", in repeat_kv")


def test_where_no_line_is_the_students_none_is_shown(tmp_path):
    (tmp_path / "attention.py").write_text("def repeat_kv(x):\n    return x\n", encoding="utf-8")
    for file in ("modules.py", "rope.py"):
        (tmp_path / file).write_text("", encoding="utf-8")
    with pytest.raises(StudentError) as raised:
        Subject(Implementation("it", tmp_path)).repeat_kv(torch.ones(2, 5), 2)
    assert (raised.value.place, raised.value.line, raised.value.tensors, raised.value.axis) == ("", "", "", "")


WORDS = "\u0111\u1ee7"
EDITS = {
    "typo": ("modules.py", "mean_square + self.eps", "mean_square + self.epsilon"),
    "no return": ("modules.py", "return self.w_down(gate * self.w_up(x))", "self.w_down(gate * self.w_up(x))"),
    "its own language": ("modules.py", "wide = x.to(", f'raise ValueError("{WORDS} \x1b[2J")\n        wide = x.to('),
}  # fmt: skip


@pytest.fixture
def run(tmp_path):
    """Run a part's tests on the reference with one edit: (output, {test name: its entry})."""

    def on(edit, part):
        file, old, new = EDITS[edit]
        folder = shutil.copytree(ROOT / "reference", tmp_path / "submission")
        text = (folder / file).read_text(encoding="utf-8")
        assert text.count(old) == 1
        (folder / file).write_text(text.replace(old, new), encoding="utf-8")
        report = tmp_path / "report.json"
        words = ["-p", "no:cacheprovider", f"--report={report}", f"tests/test_{part}.py"]
        finished = warm.python("-m", "pytest", *words, env={**os.environ, "NANOLM_IMPL": str(folder)})
        tests = json.loads(report.read_text(encoding="utf-8"))["tests"]
        return finished.stdout, {test["name"]: test for test in tests}

    return on


@pytest.mark.parametrize(("edit", "part"), [("typo", "rmsnorm"), ("no return", "swiglu")])
def test_one_cause_is_told_once_and_no_mistake_of_values_is_named(run, edit, part):
    output, tests = run(edit, part)
    red = [test for test in tests.values() if test["outcome"] == "failed"]
    assert len(red) > 10 and {test["mistake"] for test in red} == {None}
    assert output.count("FAILED ") == 1 and f"the same in {len(red)} tests" in output
    assert "what it may be" not in output and "nanolm hint" not in output
    assert len(output.splitlines()) <= 20


def test_a_students_own_language_is_left_and_control_characters_are_not(run):
    output, _ = run("its own language", "rmsnorm")
    assert f"got  {WORDS} \\x1b[2J" in output
