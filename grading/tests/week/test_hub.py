"""On a JupyterHub: a fetched week works with what one command has installed, where nothing else of the course is."""

import json
import os
import re
import shutil
import subprocess

import nbformat
import pytest

pytest.importorskip("nbgrader")
pytest.importorskip("ipykernel")
pytest.importorskip("setuptools")

from grading.authoring.cells import is_check, nbgrader_of  # noqa: E402
from grading.authoring.week_notebook import TARGET  # noqa: E402
from grading.demo import samples  # noqa: E402
from grading.paths import EXERCISES, ROOT  # noqa: E402
from grading.week.release.bundle import HUB, hub_files, student_files, zipped  # noqa: E402
from grading.week.release.trial import _borrowed_environment  # noqa: E402

pytestmark = pytest.mark.proof

pytestmark = pytest.mark.proof
PAGE = (ROOT / "docs" / "jupyterhub.md").read_text(encoding="utf-8")
COMMAND = re.search(r"^    (python -m pip install .*)$", PAGE, flags=re.MULTILINE)[1]
ASKED = ("swiglu", "budget")
STUDENT = ("--course=nanolm", "--Exchange.root=exchange")


class Hub:
    """A machine with Python, Jupyter and nbgrader, and a folder of the student's."""

    def __init__(self, folder):
        self.folder = folder
        _borrowed_environment(folder / "environment")

    def type(self, command):
        """A command line in the student's folder: (exit code, what it said). No package comes from anywhere else."""
        foreign = ("PYTHON", "NANOLM", "JUPYTER")
        env = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        env |= {
            "PATH": f"{self.folder / 'environment' / 'bin'}{os.pathsep}{env['PATH']}", "HOME": str(self.folder),
            "VIRTUAL_ENV": str(self.folder / "environment"), "PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0",
            "PYTHONNOUSERSITE": "1", "PYTHONDONTWRITEBYTECODE": "1", "MPLBACKEND": "agg",
        }  # fmt: skip
        run = subprocess.run(["bash", "-c", command], cwd=self.folder, env=env, capture_output=True, text=True)
        return run.returncode, run.stdout + run.stderr


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    """The hub after the page's command, with the week in its exchange: its first picture and two of its checks."""
    hub = Hub(tmp_path_factory.mktemp("hub"))
    (hub.folder / HUB).write_bytes(zipped(hub_files(student_files())))
    code, said = hub.type(COMMAND)
    assert code == 0, said
    notebook = nbformat.read(TARGET, as_version=4)
    notebook.cells = [
        cell for cell in notebook.cells
        if "import self_check" in cell.source or "show_rmsnorm" in cell.source
        or (is_check(cell) and nbgrader_of(cell)["grade_id"] in ASKED)
    ]  # fmt: skip
    outbound = hub.folder / "exchange" / "nanolm" / "outbound" / "week06"
    shutil.copytree(EXERCISES, outbound / EXERCISES.name, ignore=shutil.ignore_patterns("__pycache__"))
    nbformat.write(notebook, outbound / "week06.ipynb")
    (hub.folder / "exchange").chmod(0o1777)
    code, said = hub.type(f"python -m nbgrader fetch_assignment week06 {' '.join(STUDENT)}")
    assert code == 0, said
    return hub


def test_the_page_is_about_the_file_that_the_release_writes():
    assert COMMAND == f"python -m pip install {HUB}"


def test_the_library_and_the_tests_come_from_the_environment_and_nothing_else_is_there(hub):
    question = (
        "import importlib.util as u, json; from nanolm import impl; "
        "print(json.dumps([str(impl.TESTS), *(u.find_spec(n) and n for n in ('grading', 'reference', 'tests'))]))"
    )
    code, said = hub.type(f'python -c "{question}"')
    tests, *others = json.loads(said.splitlines()[-1])
    assert code == 0 and tests.startswith(str(hub.folder / "environment")) and others == [None, None, None]


def test_a_fetched_week_runs_and_its_checks_ask_the_students_own_files(hub):
    week = hub.folder / "week06"
    assert sorted(path.name for path in week.iterdir()) == ["exercises_en", "week06.ipynb"]
    code, said = hub.type("cd week06 && python -m nbgrader validate week06.ipynb")
    assert "VALIDATION FAILED ON 2 CELL(S)" in said and "Self-check of swiglu: 0 of" in said, said
    assert "not started" in said and "ModuleNotFoundError" not in said
    shutil.copy(samples.folder("all_right") / "modules.py", week / "exercises_en")
    shutil.copy(samples.folder("five_mistakes") / "budget.py", week / "exercises_en")
    code, said = hub.type("cd week06 && python -m nbgrader validate week06.ipynb")
    assert "VALIDATION FAILED ON 1 CELL(S)" in said and "Self-check of budget: 6 of 10 points" in said, said
    assert "python -m nanolm hint kvcache-uses-query-heads" in said
    code, hint = hub.type("cd week06 && python -m nanolm hint kvcache-uses-query-heads")
    assert code == 0 and hint.strip()
