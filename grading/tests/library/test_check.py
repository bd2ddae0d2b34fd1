"""`python -m nanolm check`: one screen, pytest's verdict, one thing to do next."""

import importlib.metadata as entry_points
import json
import os
import re
import shutil
import tomllib

import pytest
import warm

from grading.demo import samples
from grading.paths import EXERCISES, REFERENCE, ROOT
from nanolm.__main__ import main
from nanolm.student.check import HEIGHT, WIDTH

CRASH = ("gate = torch.nn.functional.silu(self.w_gate(x))", "gate = torch.nn.functional.silu(self.w_gates(x))")


def said(implementation, *words, command="check"):
    """One command on an implementation: (exit code, standard output, standard error)."""
    run = warm.python("-m", "nanolm", command, *words, env={**os.environ, "NANOLM_IMPL": str(implementation)})
    return run.returncode, run.stdout, run.stderr


@pytest.fixture(scope="module")
def crashing(tmp_path_factory):
    folder = shutil.copytree(REFERENCE, tmp_path_factory.mktemp("check") / "crashing")
    text = (folder / "modules.py").read_text(encoding="utf-8")
    assert text.count(CRASH[0]) == 1
    (folder / "modules.py").write_text(text.replace(*CRASH), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def screens(crashing):
    """{name: (exit code, lines of the screen)}."""
    folders = {"stubs": EXERCISES, "reference": REFERENCE, "crashing": crashing}
    folders |= {name: samples.folder(name) for name in ("five_mistakes", "half_finished")}
    found = {name: said(folder) for name, folder in folders.items()}
    assert [name for name, (_, _, errors) in found.items() if errors] == []
    return {name: (code, output.splitlines()) for name, (code, output, _) in found.items()}


@pytest.mark.parametrize("name", ["stubs", "reference", "crashing", "five_mistakes", "half_finished"])
def test_it_is_one_screen_of_ascii(screens, name):
    _, lines = screens[name]
    assert len(lines) <= HEIGHT and "".join(lines).isascii()
    assert [line for line in lines if len(line) > WIDTH and not line.startswith("next ")] == []  # a path stays whole


def test_the_exit_code_says_whether_all_is_right(screens):
    assert {name: code for name, (code, _) in screens.items()} == {
        "stubs": 1, "reference": 0, "crashing": 1, "five_mistakes": 1, "half_finished": 1,
    }  # fmt: skip


def test_nothing_done_names_the_first_exercise_with_file_and_line(screens):
    _, lines = screens["stubs"]
    assert lines[0].startswith("exercises_en: 0 of 100 points, 0 of ")
    (place,) = (line for line in lines if line.startswith("next "))
    name, file, line = re.fullmatch(r"next +([\w.]+): (\S+):(\d+)", place).groups()
    assert name == "RMSNorm.forward"
    assert (ROOT / file).read_text(encoding="utf-8").splitlines()[int(line) - 1].strip().startswith("def forward(")


def test_a_known_mistake_is_named_with_its_question_and_the_command_for_more(screens):
    text = "\n".join(screens["five_mistakes"][1])
    assert text.count("FAILED") == 1 and "FAILED    tests/test_rmsnorm.py::test_rmsnorm_does_not_center" in text
    assert "has mean 0, whatever the mean of the input" in text and "python -m nanolm hint rmsnorm-centers" in text
    assert re.search(r"^block .* waiting for rmsnorm$", text, re.MULTILINE)


def test_what_is_right_is_one_line_and_bonus_waits_for_the_core(screens):
    lines = screens["half_finished"][1]
    assert "right     rmsnorm, swiglu" in lines
    assert any(line.startswith("bonus     backward, qknorm") for line in lines)


def test_a_crash_has_its_line_and_no_name(screens, crashing):
    text = "\n".join(screens["crashing"][1])
    wanted = next(
        number for number, line in enumerate((crashing / "modules.py").read_text("utf-8").splitlines(), 1)
        if "w_gates" in line
    )  # fmt: skip
    assert f"modules.py:{wanted}" in text and "AttributeError" in text and "nanolm hint" not in text


def test_all_right_leads_to_the_real_model(screens):
    lines = screens["reference"][1]
    assert lines[0].startswith("reference: 100 of 100 points") and "python -m nanolm generate" in lines[-1]


@pytest.mark.proof
def test_the_numbers_are_pytests_own(tmp_path):
    folder = samples.folder("five_mistakes")
    code, output, _ = said(folder, "--json")
    report = tmp_path / "report.json"
    words = ("-m", "pytest", "tests", "-q", "-p", "no:cacheprovider", f"--report={report}")
    assert warm.python(*words, env={**os.environ, "NANOLM_IMPL": str(folder)}).returncode == code == 1
    tests = json.loads(report.read_text(encoding="utf-8"))["tests"]
    data = json.loads(output)
    for name in ("outcome", "points", "mistake"):
        assert {test["id"]: test[name] for test in data["tests"]} == {test["id"]: test[name] for test in tests}
    assert sum(part["earned"] for part in data["parts"]) == sum(t["points"] for t in tests if t["outcome"] == "passed")


def test_one_exercise_is_asked_alone(crashing):
    code, output, _ = said(crashing, "apply_rope")
    assert code == 0 and "right     rope" in output and "swiglu" not in output


@pytest.mark.proof
@pytest.mark.parametrize("fault", ["def half(:", None, "def apply_rope(x, cos, sin):\n    raise NotImplementedError"])
def test_a_file_that_is_broken_gone_or_has_a_stub_of_ones_own_is_one_screen(tmp_path, fault):
    folder = shutil.copytree(REFERENCE, tmp_path / "broken")
    if fault is None:
        (folder / "rope.py").unlink()
    else:
        with (folder / "rope.py").open("a", encoding="utf-8") as file:
            file.write(f"\n\n{fault}\n")
    code, output, errors = said(folder)
    assert code == 1 and errors == "" and len(output.splitlines()) <= HEIGHT
    assert re.search(r"^next +(rope_frequencies|apply_rope): \S+rope\.py:\d+$", output, re.MULTILINE)
    assert "right     rmsnorm, swiglu, budget" in output


@pytest.mark.proof
def test_a_part_that_has_become_right_is_said_once(crashing, tmp_path):
    folder = shutil.copytree(crashing, tmp_path / "mended")
    shutil.copy(EXERCISES / "model.py", folder)
    assert "JUST RIGHT" not in said(folder)[1]
    shutil.copy(REFERENCE / "modules.py", folder)
    assert "JUST RIGHT: swiglu. Now for block, logits." in said(folder)[1]
    assert "JUST RIGHT" not in said(folder)[1]


def test_an_unknown_name_is_one_sentence(tmp_path):
    for implementation, word in ((REFERENCE, "nonsense"), (tmp_path / "nowhere", "rope")):
        code, output, errors = said(implementation, word)
        assert code == 1 and output == "" and errors.startswith("The check did not run: ") and errors.count("\n") == 1
    assert "NANOLM_IMPL" in errors and "ERROR" not in errors


@pytest.mark.proof
def test_a_notebook_draws_the_same_screen(screens):
    code = "from nanolm import check; check('rope')"
    run = warm.python("-c", code, env={**os.environ, "NANOLM_IMPL": str(EXERCISES)})
    assert run.stdout == said(EXERCISES, "rope")[1] and run.returncode == 0


def test_a_file_that_imports_nanolm_waits_for_nothing():
    run = warm.python("-c", "import sys; import nanolm; print('nanolm.student' in sys.modules)")
    assert run.stdout == "False\n"


def test_the_command_nanolm_is_python_m_nanolm():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (start,) = entry_points.EntryPoints(
        entry_points.EntryPoint(name, target, "console_scripts") for name, target in project["scripts"].items()
    )
    assert start.name == "nanolm" and start.load() is main
