"""A course on GitHub: Classroom 50's autograder file, and the workflow that a student's repository runs."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

yaml = pytest.importorskip("yaml")

from grading.demo import samples  # noqa: E402
from grading.paths import EXERCISES  # noqa: E402
from grading.week.release.bundle import student_files, write_folder  # noqa: E402
from grading.week.release.errors import ReleaseError  # noqa: E402
from grading.week.release.github import WORKFLOW, write_github  # noqa: E402

pytestmark = pytest.mark.proof

pytestmark = pytest.mark.proof
SCHEMA = json.loads((Path(__file__).parent / "schemas" / "classroom50_result.json").read_text(encoding="utf-8"))
LIMIT = 10 * 2**20  # what Classroom 50's runner fetches of an autograder's bundle
GIVEN = {  # what its runner gives an autograder
    "CLASSROOM": "lm-2026", "ASSIGNMENT": "week06", "USERNAME": "ada", "OWNER": "ada", "ASSIGNMENT_TYPE": "individual",
    "SUBMISSION_TAG": "submit/2026-12-01T14-32-05Z-a1b2c3d", "PAGES_BASE_URL": "https://example.org/classroom50",
    "COMMIT_URL": "https://example.org/ada/commit/1", "RELEASE_URL": "https://example.org/ada/releases/1",
    "REVIEW_URL": "https://example.org/ada/compare/0...1",
}  # fmt: skip
SOLUTIONS = ("reference", "secret", "rubric")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """What the release writes for GitHub."""
    out = tmp_path_factory.mktemp("github")
    write_folder({**student_files(), "week06.ipynb": b"{}"}, out / "bundle")
    return write_github(out, out / "bundle")


@pytest.fixture
def checkout(made, tmp_path):
    """A student's checkout, with a commit of a known time."""
    folder = shutil.copytree(made / "template", tmp_path / "lm-2026-week06-ada")
    env = {**os.environ, "GIT_COMMITTER_DATE": "2026-12-01T23:30:00+0900", "GIT_CONFIG_GLOBAL": os.devnull}
    person = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True, env=env)
    subprocess.run(["git", *person, "commit", "-q", "--allow-empty", "-m", "x"], cwd=folder, check=True, env=env)
    return folder


def autograde(made, checkout):
    """result.json as the runner finds it after the autograder has run in the checkout."""
    foreign = ("NANOLM", "PYTHON", "PYTEST")
    env = {name: value for name, value in os.environ.items() if not name.startswith(foreign)} | GIVEN
    script = made / "autograders" / "week06" / "autograder.py"
    run = subprocess.run([sys.executable, str(script)], cwd=checkout, env=env, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    found = json.loads((checkout / "result.json").read_text(encoding="utf-8"))
    jsonschema.validate(found, SCHEMA)
    assert found["score"] == sum(test["score"] for test in found["tests"]) <= found["max-score"]
    assert all(test["score"] <= test["max-score"] for test in found["tests"])
    assert {found[key] for key in ("classroom", "assignment", "owner")} == {"lm-2026", "week06", "ada"}
    return found


def test_right_work_has_all_points_and_the_time_of_its_commit(made, checkout):
    shutil.copytree(samples.folder("all_right"), checkout / "exercises_en", dirs_exist_ok=True)
    found = autograde(made, checkout)
    assert found["score"] == found["max-score"] > 100 and all(test["passed"] for test in found["tests"])
    assert found["datetime"] == "2026-12-01T14:30:00Z" and len(found["tests"]) > 150


def test_the_tests_that_ask_are_the_autograders_own(made, checkout):
    shutil.rmtree(checkout / "tests")
    (checkout / "conftest.py").write_text("raise SystemExit(0)\n", encoding="utf-8")
    shutil.copytree(samples.folder("half_finished"), checkout / "exercises_en", dirs_exist_ok=True)
    found = autograde(made, checkout)
    assert 0 < found["score"] < found["max-score"] and len(found["tests"]) > 150
    assert any("not started" in test["message"] for test in found["tests"] if not test["passed"])


def test_no_file_at_all_gets_no_points_and_a_sentence(made, checkout):
    shutil.rmtree(checkout / "exercises_en")
    found = autograde(made, checkout)
    assert found["score"] == 0 < found["max-score"]
    assert "NANOLM_IMPL" in found["tests"][0]["message"]


def test_a_file_that_can_not_be_read_costs_its_own_tests_and_says_where(made, checkout):
    shutil.copytree(samples.folder("all_right"), checkout / "exercises_en", dirs_exist_ok=True)
    (checkout / "exercises_en" / "rope.py").write_text("def rope_frequencies(:\n", encoding="utf-8")
    found = autograde(made, checkout)
    by_part = {
        part: [test for test in found["tests"] if test["test-name"].startswith(f"{part}:")]
        for part in ("rope", "rmsnorm")
    }
    assert by_part["rope"] and all("rope.py, line 1" in test["message"] for test in by_part["rope"])
    assert not any(test["score"] for test in by_part["rope"])
    assert by_part["rmsnorm"] and all(test["passed"] for test in by_part["rmsnorm"])


def test_nothing_that_a_student_may_read_there_solves_the_week(made):
    names = [path.relative_to(made).as_posix() for path in made.rglob("*") if path.is_file()]
    assert not [name for name in names if any(word in name for word in SOLUTIONS)]
    for path in EXERCISES.glob("*.py"):
        assert (made / "template" / "exercises_en" / path.name).is_file()
    autograder = made / "autograders"
    assert not list(autograder.rglob("exercises_en"))
    assert sum(path.stat().st_size for path in autograder.rglob("*") if path.is_file()) < LIMIT


def test_the_workflow_runs_the_public_tests_of_the_repository_that_it_lies_in(made):
    template = made / "template"
    workflow = yaml.safe_load((template / WORKFLOW).read_text(encoding="utf-8"))
    assert "push" in workflow[True] and workflow["permissions"] == {"contents": "read"}  # YAML reads the key `on` so
    (job,) = workflow["jobs"].values()
    steps = job["steps"]
    used = [step["uses"].split("@")[0] for step in steps if "uses" in step]
    assert used == ["actions/checkout", "actions/setup-python"]
    install, tests = (step["run"] for step in steps if "run" in step)
    assert all((template / name).is_file() for name in re.findall(r"-c (\S+)", install)) and install.endswith("-e .")
    bin_folder = str(Path(sys.executable).parent)
    env = {name: value for name, value in os.environ.items() if not name.startswith(("NANOLM", "PYTEST"))}
    env |= {"PATH": f"{bin_folder}{os.pathsep}{env['PATH']}", "PYTHONPATH": str(template)}
    command = ["bash", "-e", "-c", f"{tests} -k rmsnorm"]
    run = subprocess.run(command, cwd=template, env=env, capture_output=True, text=True)
    assert run.returncode == 1 and "not started" in run.stdout, run.stdout + run.stderr


def test_what_is_not_of_a_release_is_not_lost(made, tmp_path):
    (tmp_path / "github").mkdir()
    (tmp_path / "github" / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(ReleaseError, match="would be lost"):
        write_github(tmp_path, made / "template")
    assert (tmp_path / "github" / "mine.txt").read_text(encoding="utf-8") == "mine"
