"""The verdicts on the samples, and how its table reads."""

import json
import subprocess
from types import SimpleNamespace

import pytest
import reports_apart

from grading.demo import check_samples, samples
from grading.proof import marks


@pytest.fixture(scope="module")
def reports():
    """What the named tests say about each sample."""
    return reports_apart.reports({sample: samples.folder(sample) for sample in check_samples.SAMPLES})


def parts_with(tests, outcome):
    return {test["part"] for test in tests if test["outcome"] == outcome}


def test_all_right_passes_every_test(reports):
    assert [test["id"] for test in reports["all_right"] if test["outcome"] not in ("passed", "advice")] == []


def test_all_right_earns_the_core_100(reports):
    assert sum(test["points"] for test in reports["all_right"] if test["part"] in marks.WEEK["CORE"]) == 100


def test_five_mistakes_are_found_in_their_five_parts(reports):
    tests = reports["five_mistakes"]
    red = {test["name"] for test in tests if test["outcome"] == "failed"}
    assert parts_with(tests, "failed") == {"rmsnorm", "swiglu", "rope", "attention", "budget"}
    assert parts_with(tests, "not started") == set()
    assert {
        "test_rmsnorm_does_not_center",
        "test_swiglu_ffn_dim_rounds_up",
        "test_rope_frequencies_use_the_configured_theta",
        "test_attention_repeat_kv_keeps_neighbours_together",
        "test_budget_cache_bytes_per_token",
    } <= red


def test_half_finished_has_no_mistake(reports):
    tests = reports["half_finished"]
    assert parts_with(tests, "failed") == set()
    assert {"rmsnorm", "swiglu", "rope"} <= parts_with(tests, "passed")
    assert {"rope", "attention", "block", "budget"} <= parts_with(tests, "not started") | parts_with(tests, "waiting")


def made(part, outcome, points=2, name="test_x", mistake=None):
    return {"part": part, "outcome": outcome, "points": points, "name": name, "mistake": mistake, "message": f"{part}!"}


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        (["passed", "passed"], "    4/4 passed"),
        (["passed", "failed", "not started", "waiting"], "    2/8 1 wrong"),
        (["passed", "not started"], "    2/4 in progress"),
        (["not started", "waiting"], "    0/4 not started"),
        (["waiting"], "    0/2 waiting"),
    ],
)
def test_standing_names_the_most_urgent_state(outcomes, expected):
    assert check_samples.standing([made("rope", outcome) for outcome in outcomes]) == expected


def test_table_has_a_row_a_part_and_a_column_a_sample():
    tests = {"a": [made("rope", "passed"), made("softcap", "failed", 3)], "b": [made("rope", "failed")]}
    lines = [line.split() for line in check_samples.table(tests) if line]
    assert lines[0] == ["part", "a", "b"]
    assert ["rope", "2/2", "passed", "0/2", "1", "wrong"] in lines
    assert ["=", "core", "2/2", "0/2"] in lines
    assert ["=", "bonus", "0/3", "0/0"] in lines


def test_mistakes_are_named_and_where_they_have_no_name_the_tests_are():
    named = [made("rope", "failed", mistake="rope-minus"), made("rope", "failed", name="test_y")]
    lines = list(check_samples.mistakes(named))
    assert lines[1].split() == ["-", "rope-minus"] and len(lines) == 2
    unnamed = [made("rope", "passed"), made("rope", "failed", name="test_y")]
    assert [line.split()[-1] for line in check_samples.mistakes(unnamed)] == ["rope!", "test_y"]


def test_the_table_is_ascii(reports):
    named = (line for tests in reports.values() for line in check_samples.mistakes(tests))
    text = "\n".join([*check_samples.table(reports), *named])
    assert text.isascii()


def test_the_last_step_runs_the_right_samples_code(monkeypatch, capsys):
    commands = []
    monkeypatch.setattr(check_samples, "check", lambda sample: [made("rope", "passed")])
    finished = SimpleNamespace(returncode=3)
    monkeypatch.setattr(subprocess, "run", lambda command, **_: commands.append(command) or finished)
    assert check_samples.run(None) == 3  # the generation's exit code is the command's
    assert commands[0][1:] == [
        "-m", "nanolm", "generate", "--impl", str(samples.folder("all_right")), "--prompt", "The capital of France is",
    ]  # fmt: skip
    assert "all_right" in capsys.readouterr().out


def test_tests_that_can_not_run_are_one_sentence(monkeypatch):
    monkeypatch.setattr(check_samples, "folder", lambda name: f"build/samples/{name}")
    with pytest.raises(marks.NoReport) as caught:
        check_samples.check("no_such_sample")
    assert "build/samples/no_such_sample" in str(caught.value) and "\n" not in str(caught.value)


def test_a_report_is_read_as_written(monkeypatch):
    def run(command, **_):
        with open(command[-1], "w", encoding="utf-8") as file:
            json.dump({"implementation": "x", "tests": [made("rope", "failed")]}, file)
        return SimpleNamespace(returncode=1, stdout="", stderr="")

    monkeypatch.setattr(subprocess, "run", run)
    assert check_samples.check("all_right") == [made("rope", "failed")]
