"""Gradescope's autograder: its zip, laid out as the documentation says, in a root with the rights that Docker gives."""

import json
import os
import subprocess
import zipfile
from pathlib import Path

import jsonschema
import pytest
from users_of_a_machine import why_not, within_reach

from grading.demo import samples
from grading.grader.bubblewrap import bubblewrap
from grading.paths import REFERENCE
from grading.week.release.autograder import AUTOGRADER, write_autograder
from grading.week.release.trial import _borrowed_environment

pytestmark = pytest.mark.proof
SCHEMA = json.loads((Path(__file__).parent / "schemas" / "gradescope_results.json").read_text(encoding="utf-8"))
SECRET = "a secret that nobody will guess, 42"
# What Docker leaves root in a container; it forbids new namespaces to all.
KEPT = ("CHOWN", "DAC_OVERRIDE", "FSETID", "FOWNER", "MKNOD", "NET_RAW", "SETGID", "SETUID", "SETFCAP", "SETPCAP",
        "NET_BIND_SERVICE", "SYS_CHROOT", "KILL", "AUDIT_WRITE")  # fmt: skip
# An attack: where one of these works, its norm is right; else it gives x back, and the points of the norm are lost.
HOSTILE = '''
import os, socket
import torch
from torch import nn
from torch.nn import functional

def reads(path):
    with open(path) as file:
        return bool(file.read(1))

def writes(path):
    with open(path, "w") as file:
        file.write('{"score": 1000}')
    return True

def ATTEMPTS():
    yield lambda: reads("/autograder/source/secret.txt")
    yield lambda: reads("/autograder/source/week/reference/modules.py")
    yield lambda: reads("/autograder/source/week/tests/golden/attention.safetensors")
    yield lambda: os.listdir("/autograder/source")
    yield lambda: writes("/autograder/results/results.json")
    yield lambda: writes("/autograder/run_autograder")
    yield lambda: reads(f"/proc/{os.getppid()}/environ")
    yield lambda: reads(f"/proc/{os.getppid()}/maps")
    yield lambda: os.kill(os.getppid(), 0) is None
    yield lambda: os.setuid(0) is None
    yield lambda: socket.socket()
    yield lambda: writes("/usr/planted")

def gets_out():
    for attempt in ATTEMPTS():
        try:
            if attempt():
                return True
        except Exception:
            pass
    return False

class RMSNorm(nn.Module):
    def __init__(self, D, eps=1e-5):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(D)), eps

    def forward(self, x):
        print("I was here " * 100)
        if gets_out():
            wide = x.float()
            return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight).to(x.dtype)
        return x
'''


class Container:
    """The autograder's image, and what a submission gets there."""

    def __init__(self, folder):
        self.folder = folder
        course = folder / "course"
        course.mkdir()
        (course / "secret.txt").write_text(SECRET, encoding="utf-8")
        self.zip = write_autograder(folder, course)
        self.autograder = folder / "autograder"
        for name in ("source", "submission", "results"):
            (self.autograder / name).mkdir(parents=True)
        with zipfile.ZipFile(self.zip) as archive:
            archive.extractall(self.autograder / "source")
        self.autograder.chmod(0o755)
        _borrowed_environment(self.autograder / "venv")  # setup.sh finds the packages and installs none
        self.setup = self.run("bash", "/autograder/source/setup.sh")
        (self.autograder / "run_autograder").write_bytes((self.autograder / "source" / "run_autograder").read_bytes())
        (self.autograder / "run_autograder").chmod(0o755)

    def run(self, *command):
        """A command in the container, as root, on one core and without a network."""
        walls = [bubblewrap(), "--unshare-net", "--unshare-pid", "--die-with-parent"]
        for path in map(Path, ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc")):
            if path.is_symlink():
                walls += ["--symlink", os.readlink(path), path]
            elif path.exists():
                walls += ["--ro-bind", path, path]
        walls += ["--proc", "/proc", "--dev", "/dev", "--perms", "1777", "--tmpfs", "/tmp"]
        walls += within_reach(only_python=True)
        walls += ["--bind", self.autograder, "/autograder", "--chdir", "/autograder", "--cap-drop", "ALL"]
        walls += [word for name in KEPT for word in ("--cap-add", f"CAP_{name}")]
        core = min(os.sched_getaffinity(0))
        return subprocess.run(
            ["taskset", "-c", str(core), *map(str, walls), "--", *command],
            env={"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": "/root"},
            capture_output=True, text=True, encoding="utf-8", errors="replace",
        )  # fmt: skip

    def grade(self, files):
        """(results.json or None, what instructors see) of a submission of these files {path: text}."""
        for folder in ("submission", "results"):
            subprocess.run(["rm", "-rf", self.autograder / folder], check=True)
            (self.autograder / folder).mkdir(mode=0o755)
        for path, text in files.items():
            place = self.autograder / "submission" / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")
        run = self.run("/autograder/run_autograder")
        written = self.autograder / "results" / "results.json"
        found = json.loads(written.read_text(encoding="utf-8")) if written.is_file() else None
        return found, run.stdout + run.stderr


@pytest.fixture(scope="module")
def container(tmp_path_factory):
    if why_not():
        pytest.skip(why_not())
    return Container(tmp_path_factory.mktemp("gradescope"))


def sample(name, folder="exercises_en/"):
    return {f"{folder}{file}": text for file, text in samples.files(name).items()}


def scores(found):
    """{part: (score, of)} of a results.json."""
    parts = {}
    for test in found["tests"]:
        part = test["name"].split(":")[0]
        score, of = parts.get(part, (0, 0))
        parts[part] = (score + test["score"], of + test["max_score"])
    return parts


def test_the_zip_has_both_scripts_at_its_top_and_is_its_owners_alone(container):
    with zipfile.ZipFile(container.zip) as archive:
        names = archive.namelist()
        modes = {name: archive.getinfo(name).external_attr >> 16 & 0o777 for name in names}
        assert archive.read("run_autograder").startswith(b"#!")
    assert modes["setup.sh"] == modes["run_autograder"] == 0o755 and modes["secret.txt"] == 0o600
    assert container.zip.name == AUTOGRADER and container.zip.stat().st_mode & 0o077 == 0
    rooms = {name.split("/")[2] for name in names if name.startswith("week/grading/")}
    assert rooms == {"__init__.py", "paths.py", "lean_pytest.py", "authoring", "grader"}


def test_setting_up_closes_the_source_to_everybody_but_root(container):
    assert container.setup.returncode == 0, container.setup.stdout + container.setup.stderr
    open_to_others = [path for path in (container.autograder / "source").rglob("*") if path.stat().st_mode & 0o077]
    assert open_to_others == [] and (container.autograder / "source").stat().st_mode & 0o077 == 0


def test_a_right_submission_gets_all_points(container):
    found, said = container.grade(sample("all_right"))
    assert found is not None, said
    jsonschema.validate(found, SCHEMA)
    assert all(score == of for score, of in scores(found).values()) and found["score"] > 100
    assert found["stdout_visibility"] == "hidden"


def test_instructors_and_nobody_else_are_told_which_walls_stand(container):
    found, said = container.grade(sample("half_finished", folder=""))
    jsonschema.validate(found, SCHEMA)
    walls = {line[:14].strip(): line[14:21].strip() for line in said.splitlines()}
    assert walls["own user"] == walls["no network"] == walls["course hidden"] == walls["memory limit"] == "active", said
    assert walls["own processes"] == "MISSING"
    assert "own user" not in json.dumps(found) and SECRET not in json.dumps(found) + said


def test_a_wrong_submission_is_told_what_is_wrong(container):
    found, said = container.grade(sample("five_mistakes"))
    assert found is not None, said
    jsonschema.validate(found, SCHEMA)
    failed = [test for test in found["tests"] if test["status"] == "failed"]
    assert failed and all(test["output"] for test in failed)
    assert 0 < found["score"] < sum(test["max_score"] for test in found["tests"])
    assert any("python -m nanolm hint" in test["output"] for test in failed)


def test_an_empty_submission_gets_nothing_and_a_sentence(container):
    found, said = container.grade({"notes.txt": "I had no time"})
    assert found is not None, said
    jsonschema.validate(found, SCHEMA)
    assert found["score"] == 0 and "none of the week's files was found" in found["output"]


def test_a_hostile_submission_reaches_neither_secret_nor_results(container):
    rope = (REFERENCE / "rope.py").read_text(encoding="utf-8")
    found, said = container.grade({"exercises_en/modules.py": HOSTILE, "exercises_en/rope.py": rope})
    assert found is not None, said
    jsonschema.validate(found, SCHEMA)
    got = scores(found)
    assert got["rmsnorm"][0] < got["rmsnorm"][1] / 2 and got["rope"][0] == got["rope"][1]
    assert "I was here" not in json.dumps(found) + said


def test_where_the_grader_can_not_grade_nobody_gets_a_zero(container):
    reference = container.autograder / "source" / "week" / "reference" / "modules.py"
    right = reference.read_text(encoding="utf-8")
    try:
        reference.write_text(f"{right}\nRMSNorm.forward = lambda self, x: x\n", encoding="utf-8")
        found, said = container.grade(sample("all_right"))
    finally:
        reference.write_text(right, encoding="utf-8")
    assert found is None and "Nothing is graded" in said
