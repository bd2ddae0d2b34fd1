"""`make test` and `make proof` together run every test of ours, and `make test` alone asks something of every room."""

import ast
import re
from pathlib import Path

import pytest
import warm
from test_rooms import ROOMS

from grading.paths import ROOT

OURS = ROOT / "grading" / "tests"
BY_COMMAND = {"exercises_en", "notebooks", "reference", "tests"}  # `make test` has a line of its own for them
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8").replace("$(RUN)", "python")


def commands(target):
    """The lines of one target of the Makefile."""
    (lines,) = re.findall(rf"^{target}:.*\n((?:\t.*\n)+)", MAKEFILE, flags=re.MULTILINE)
    return [line.strip() for line in lines.splitlines()]


def marks(decorators):
    """Names of pytest's marks, of decorators or of what `pytestmark` holds."""
    for node in decorators:
        for part in ast.walk(node):
            if isinstance(part, ast.Attribute) and ast.unparse(part.value) == "pytest.mark":
                yield part.attr


def asked_in_make_test(path):
    """Whether a test file has a test that is not marked as proof, by its text."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    set_here = [node for node in tree.body if isinstance(node, ast.Assign)]
    whole = [node.value for node in set_here if ast.unparse(node.targets[0]) == "pytestmark"]
    tests = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
    return "proof" not in marks(whole) and any("proof" not in marks(test.decorator_list) for test in tests)


QUICK = [path for path in sorted(OURS.rglob("test_*.py")) if asked_in_make_test(path)]


def test_every_test_is_in_one_of_the_two():
    (ours,) = re.findall(r"^OUR_TESTS := (.*)$", MAKEFILE, flags=re.MULTILINE)
    assert "-m pytest grading/tests " in ours and not re.search(r" -[mk] (?!pytest)|--ignore|--deselect", ours)
    runs = {target: [line for line in commands(target) if "$(OUR_TESTS)" in line] for target in ("test", "proof")}
    assert runs == {"test": ['$(OUR_TESTS) -m "not proof"'], "proof": ["$(OUR_TESTS) -m proof"]}


def test_the_proof_holds_the_matrix_and_the_mutants():
    assert {"python -m grading matrix", "python -m grading mutants"} <= set(commands("proof"))


def test_ci_runs_both():
    text = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert re.findall(r"^make --no-print-directory (\w+) < /dev/null$", text, flags=re.MULTILINE) == ["test", "proof"]


def test_pytest_chooses_as_this_file_reads_the_marks():
    command = ("-m", "pytest", OURS / "proof", "-m", "not proof", "--collect-only", "-q", "-p", "no:cacheprovider")
    found = warm.python(*command)
    names = {Path(line.split("::")[0]).name for line in found.stdout.splitlines() if "::" in line}
    assert names == {path.name for path in QUICK if path.parent == OURS / "proof"}, found.stdout[-500:]


@pytest.mark.parametrize("folder", sorted(path.name for path in OURS.iterdir() if list(path.glob("test_*.py"))))
def test_make_test_asks_something_of_each_folder(folder):
    assert [path for path in QUICK if path.parent.name == folder]


@pytest.mark.parametrize("room", sorted(set(ROOMS) - BY_COMMAND - {"grading/tests"}))
def test_make_test_asks_something_of_each_room(room):
    name = re.compile(rf"\b{room.removeprefix('tests/').replace('/', '[.]')}\b")  # tests/ is on the path
    assert [path for path in QUICK if name.search(path.read_text(encoding="utf-8"))]


def test_make_test_checks_the_rooms_that_no_test_imports():
    lines = " ".join(commands("test"))
    for check in ("stubs --check", "notebooks --check", "week-notebook --check", "pytest tests -q", "ruff check ."):
        assert check in lines
