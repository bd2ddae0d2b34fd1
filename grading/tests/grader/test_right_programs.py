"""Right code loses nothing, whatever its layout, imports, encodings, helpers and style: at home and in the grade."""

import pytest
import reports_apart
from walls import SANDBOXED

from grading.grader.batch import Batch, prepare
from grading.grader.fork_server import ForkServer
from grading.grader.student_files import take_in
from grading.proof.right_programs import PROGRAMS
from nanolm.impl import load

pytestmark = pytest.mark.proof

POINTS = 162


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """{program: its submission's folder}."""
    room = tmp_path_factory.mktemp("right")
    for number, files in enumerate(PROGRAMS.values()):
        for name, data in files.items():
            path = room / str(number) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    return {name: room / str(number) for number, name in enumerate(PROGRAMS)}


@pytest.fixture(scope="module")
def graded(folders, tmp_path_factory):
    """{program: its result}."""
    exam = prepare(4711, tmp_path_factory.mktemp("exam"))
    batch = Batch(exam, b"the secret of these tests", SANDBOXED)
    intakes = [take_in(folder, name) for name, folder in folders.items()]
    with ForkServer(batch.sandboxed, 2) as fork_server:
        return {intake.name: result for intake, result in batch.results(intakes, fork_server)}


@pytest.fixture(scope="module")
def at_home(folders):
    """{program: its tests}, of the students' own way."""
    return reports_apart.reports({name: home(folder) for name, folder in folders.items()})


def home(folder):
    """The folder that a student would name in NANOLM_IMPL."""
    return folder.joinpath(*take_in(folder).place)


def test_there_are_sixty():
    assert len(PROGRAMS) >= 60


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_right_program_has_every_point_in_the_grade(graded, name):
    result = graded[name]
    red = {test["name"]: (test["state"], test["message"]) for test in result["tests"] if test["state"] != "passed"}
    assert (result["state"], result["points"], red) == ("graded", POINTS, {}), result["error"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_right_program_passes_every_test_at_home(at_home, name):
    tests = [test for test in at_home[name] if test["part"] != "timing"]
    assert {test["name"]: (test["outcome"], test["message"]) for test in tests if test["outcome"] != "passed"} == {}
    assert sum(test["points"] for test in tests) == POINTS


def test_what_is_not_there_in_the_grade_is_said_at_home(tmp_path):
    (tmp_path / "modules.py").write_text("import torch, psutil, json\nfrom .rope import x\n", encoding="utf-8")
    (tmp_path / "helpers.py").write_text("import pytest\nfrom modules import y\nimport exercises_en.modules\n", "utf-8")
    assert load(str(tmp_path)).not_provided() == {"psutil": "modules.py", "pytest": "helpers.py"}


def test_a_package_that_is_not_there_is_named_with_those_that_are(tmp_path):
    (tmp_path / "rope.py").write_text("import einops_of_another_name\n", encoding="utf-8")
    with pytest.raises(
        Exception, match="No module named 'einops_of_another_name'. Where code is graded there are torch"
    ):
        load(str(tmp_path)).module("rope")


def test_a_line_that_this_python_can_not_read_names_the_version(tmp_path):
    (tmp_path / "rope.py").write_text("x = 1\ntype Pair[T] = tuple[T, T\n", encoding="utf-8")
    with pytest.raises(Exception, match=r"rope.py, line 2: Python 3\.\d+, which runs it here, can't read this line"):
        load(str(tmp_path)).module("rope")
