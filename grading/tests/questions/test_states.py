"""How a run of the week's tests is reported: five states, one clear text, and nobody else's mistake."""

import json
import os
import shutil

import pytest
import warm

from nanolm.impl import ROOT

CENTRE = "wide = wide - wide.mean(-1, keepdim=True)\n        mean_square = wide.pow(2)"
STUB = 'raise NotImplementedError("rope.py: apply_rope is not started. Check it.")'
SHOUT = 'print("\\x1b[2J<script>")\n        wide = x.to('
FACTOR = "return (1.37 * wide * torch.rsqrt("
EDITS = {  # file, a text that stands there once, and what comes in its place
    "centred": ("modules.py", "mean_square = wide.pow(2)", CENTRE),
    "a factor": ("modules.py", "return (wide * torch.rsqrt(", FACTOR),
    "theta fixed": ("rope.py", "(theta**-exponents)", "(10_000.0**-exponents)"),
    "tiled heads": ("attention.py", "x.repeat_interleave(G, dim=1)", "x.repeat(1, G, 1, 1)"),
    "raises": ("modules.py", "gate = torch.nn.functional.silu(self.w_gate(x))", "gate = self.w_gates(x)"),
    "rope stub": ("rope.py", "a, b = x[..., 0::2], x[..., 1::2]", STUB),
    "None": ("modules.py", "return self.w_down(gate * self.w_up(x))", "self.w_down(gate * self.w_up(x))"),
    "fp32 by rope": ("rope.py", "turned.flatten(-2).to(x.dtype)", "turned.flatten(-2)"),
    "loud": ("modules.py", "wide = x.to(", SHOUT),
    "looks at values": ("rope.py", "angles = positions.", "assert positions.tolist()\n    angles = positions."),
}


@pytest.fixture
def run(tmp_path):
    """Run the tests on the reference with some edits: (exit code, output, {test name: its entry})."""

    def on(*edits, arguments=("tests",)):
        folder = shutil.copytree(ROOT / "reference", tmp_path / "submission")
        for edit in edits:
            file, old, new = EDITS[edit]
            text = (folder / file).read_text(encoding="utf-8")
            assert text.count(old) == 1
            (folder / file).write_text(text.replace(old, new), encoding="utf-8")
        report = tmp_path / "report.json"
        finished = warm.python(
            *("-m", "pytest", "-q", "-p", "no:cacheprovider", f"--report={report}", *arguments),
            env={**os.environ, "NANOLM_IMPL": str(folder)},
        )
        tests = json.loads(report.read_text(encoding="utf-8"))["tests"]
        return finished.returncode, finished.stdout, {test["name"]: test for test in tests}

    return on


def names(tests, outcome):
    return {name for name, test in tests.items() if test["outcome"] == outcome}


def test_right_code_is_green(run):
    code, output, tests = run()
    assert code == 0 and names(tests, "passed") == set(tests)
    assert "implementation under test" in output and "what it may be" not in output


def test_a_mistake_reads_symptom_expected_got_cause_next(run):
    code, output, tests = run("a factor")
    assert code == 1
    text = output.split("::test_rmsnorm_produces_unit_rms\n")[1].splitlines()[:5]
    assert text[0].strip() == "a row of the output does not have root mean square 1"
    assert [line.split()[0] for line in text[1:5]] == ["expected", "got", "cause", "next"]
    assert text[4].endswith("python -m nanolm hint test_rmsnorm_produces_unit_rms")
    assert "Traceback" not in output and "assert" not in output
    assert "rmsnorm: not one of the mistakes that we know" in output


def test_a_known_mistake_is_told_by_its_own_test_and_named_at_the_end(run):
    code, output, tests = run("centred", arguments=("tests", "--verbosity=0"))
    lines = output.splitlines()
    assert code == 1 and len(lines) <= 24
    told = lines.index("FAILED tests/test_rmsnorm.py::test_rmsnorm_does_not_center")
    assert lines[told + 1].strip() == "the mean of a row changed by more than the scale"
    assert [line.split()[0] for line in lines[told + 2 : told + 4]] == ["expected", "got"]
    assert any("mean 0, whatever the mean of the input was" in line for line in lines[-10:])
    assert any(line.endswith("python -m nanolm hint rmsnorm-centers") for line in lines[-10:])
    assert "Do you subtract the mean? RMSNorm only divides." not in output  # the name's own question says it


def test_a_mistake_stays_in_its_part(run):
    _, _, tests = run("centred", "theta fixed", "tiled heads")
    assert {tests[name]["part"] for name in names(tests, "failed")} == {"rmsnorm", "rope", "attention"}
    assert tests["test_attention_repeat_kv_keeps_neighbours_together"]["outcome"] == "failed"
    assert tests["test_logits_match_stored_answers"]["message"] == "waiting for rmsnorm: its own tests come first"


def test_a_part_run_alone_still_knows_its_ingredients(run):
    _, _, tests = run("fp32 by rope", arguments=("tests/test_attention.py",))
    assert tests["test_attention_runs_in_bf16"]["outcome"] == "waiting"
    assert tests["test_attention_runs_in_bf16"]["message"] == "waiting for rope: its own tests come first"
    assert names(tests, "failed") == set()


def test_a_stub_is_not_started_and_what_stands_on_it_waits(run):
    code, output, tests = run("rope stub")
    assert code == 1
    assert tests["test_rope_preserves_norm"]["outcome"] == "not started"
    assert tests["test_rope_preserves_norm"]["message"] == "rope.py: apply_rope is not started. Check it."
    assert tests["test_rope_frequencies_follow_the_formula"]["outcome"] == "passed"
    for part in ("attention", "block", "logits"):
        assert {t["outcome"] for t in tests.values() if t["part"] == part} <= {"waiting", "passed"}
    assert tests["test_block_matches_stored_answers"]["message"] == "waiting for rope: apply_rope is not started"
    assert " not started" in output.splitlines()[-1] and "failed" not in output.splitlines()[-1]


def test_an_exception_names_file_line_and_function(run):
    _, output, tests = run("raises")
    message = tests["test_swiglu_worked_example"]["message"]
    assert message.startswith("AttributeError: 'SwiGLU' object has no attribute 'w_gates' (modules.py, line ")
    assert "your code raised AttributeError at modules.py, line" in output and "Traceback" not in output


def test_a_forgotten_return_is_said(run):
    _, output, _ = run("None")
    assert "SwiGLU gives None" in output and "Is there a return at the end of the function?" in output


def test_a_look_at_values_is_advice_and_no_mistake(run):
    code, output, tests = run("looks at values")  # on the meta device torch itself raises NotImplementedError
    assert code == 0 and names(tests, "advice") == {"test_memory_forward_waits_for_no_value"}, output
    assert names(tests, "advice") | names(tests, "passed") == set(tests)
    text = output.split("test_memory_forward_waits_for_no_value\n")[1].splitlines()
    assert text[0].startswith("a forward reads values back into Python")
    assert [line.split()[0] for line in text[1:4]] == ["expected", "got", "cause"]


def test_what_student_code_prints_changes_nothing(run):
    code, _, tests = run("loud")
    assert code == 0 and names(tests, "passed") == set(tests)


def test_the_terminal_gets_ascii(run):
    _, output, _ = run("centred", "tiled heads")
    assert output.isascii()


def test_the_lessons_command_selects_its_tests(run):
    _, _, tests = run(arguments=("tests/test_rmsnorm.py", "tests/test_swiglu.py", "-v"))
    fixed = {
        "test_rmsnorm_does_not_center",
        "test_rmsnorm_produces_unit_rms",
        "test_rmsnorm_scales_with_gamma",
    }
    assert fixed <= set(tests) and {test["part"] for test in tests.values()} == {"rmsnorm", "swiglu"}
