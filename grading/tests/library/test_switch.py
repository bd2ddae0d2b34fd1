"""NANOLM_IMPL: what it names, and the one sentence where it names nothing that can be used."""

import os
import shutil

import pytest
import warm

from nanolm import impl
from nanolm.impl import ROOT, ImplementationError, load

REFERENCE = ROOT / "reference"


def pytest_on(folder, *arguments):
    """One run of the students' tests: exit code and everything that it printed."""
    words = ("-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments)
    run = warm.python(*words, env={**os.environ, "NANOLM_IMPL": str(folder)})
    return run.returncode, (run.stdout + run.stderr).strip()


@pytest.fixture
def copy(tmp_path):
    """A copy of the reference in a folder, as a submission is."""
    return shutil.copytree(REFERENCE, tmp_path / "submission")


def test_unset_means_the_exercises(monkeypatch):
    monkeypatch.delenv("NANOLM_IMPL", raising=False)
    assert load().folder == ROOT / "exercises_en"
    monkeypatch.setenv("NANOLM_IMPL", "")
    assert load().folder == ROOT / "exercises_en"


def test_a_folder_is_loaded_as_a_package(copy):
    first, second = load(str(copy)), load(str(REFERENCE))
    assert first.Block.__module__ != second.Block.__module__
    assert first.check().Block is not second.check().Block
    assert first.module("attention").RMSNorm is first.RMSNorm  # relative imports reach the siblings


def test_a_package_elsewhere_on_the_path_is_found(copy, monkeypatch):
    monkeypatch.syspath_prepend(copy.parent)
    monkeypatch.chdir(copy.parent.parent)
    assert load("submission").folder == copy


@pytest.mark.parametrize("name", ["nonsense", "no.such.package", "json", "tests"])
def test_an_unknown_value_says_what_to_set(name):
    with pytest.raises(ImplementationError, match=f"NANOLM_IMPL is '{name}'.*set it to exercises_en"):
        load(name)


def test_pytest_prints_one_sentence_for_an_unknown_value():
    code, printed = pytest_on("nonsense")
    assert code == 4
    assert printed.startswith("ERROR: NANOLM_IMPL is 'nonsense'") and printed.count("\n") == 0


def test_a_file_that_cant_be_read_costs_its_own_tests(copy):
    broken = copy / "rope.py"
    broken.write_text(broken.read_text(encoding="utf-8") + "\ndef half(:\n", encoding="utf-8")
    line = len(broken.read_text(encoding="utf-8").splitlines())
    code, printed = pytest_on(copy)
    assert code == 1 and printed.count(f"rope.py, line {line}:") == 1
    assert "waiting for rope.py: it can't be used" in printed and "Traceback" not in printed
    assert printed.count("FAILED tests/") == printed.count("FAILED tests/test_rope.py") > 0
    assert pytest_on(copy, "tests/test_rmsnorm.py", "tests/test_swiglu.py")[0] == 0  # modules.py does not need it


@pytest.mark.parametrize(
    ("instead", "sentence"),
    [
        (None, "budget.py is missing"),
        ("def count(", "budget.py has no count_parameters"),
        ("count_parameters = 3\n\n\ndef count(", "count_parameters is no function but int"),
    ],
)
def test_what_one_file_lacks_is_said_by_its_own_tests(copy, instead, sentence):
    file = copy / "budget.py"
    text = file.read_text(encoding="utf-8")
    file.unlink()
    if instead:
        file.write_text(text.replace("def count_parameters(", instead), encoding="utf-8")
    code, printed = pytest_on(copy, "tests/test_rmsnorm.py", "tests/test_budget.py")
    assert code == 1 and printed.count(sentence) == 1
    assert "FAILED tests/test_rmsnorm.py" not in printed


def test_the_home_folder_has_its_short_name(copy, monkeypatch):
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(copy.parent))
    assert load("~/submission").folder == copy.resolve()


@pytest.mark.parametrize("name", ["x" * 5_000, "a\0b", "a" * 300 + "/b"])
def test_a_name_that_no_system_takes_is_one_sentence(name):
    with pytest.raises(ImplementationError, match="NANOLM_IMPL is "):
        load(name)


@pytest.mark.parametrize("name", ["modules.py", "work.zip"])
def test_a_file_in_place_of_the_folder_is_said(copy, name):
    (copy / name).touch()
    with pytest.raises(ImplementationError, match="which is a file: name the folder that holds your modules.py"):
        load(str(copy / name))


@pytest.mark.skipif(os.name == "nt", reason="names are text there")
def test_a_name_that_is_no_utf8_can_be_printed(copy):
    odd = os.fsdecode(os.fsencode(copy.parent) + b"/caf\xe9")
    shutil.copytree(copy, odd)
    code, printed = pytest_on(odd, "tests/test_budget.py")
    assert code == 0 and "INTERNALERROR" not in printed and "caf\\udce9" in printed


def test_a_missing_file_is_named(copy):
    (copy / "model.py").unlink()
    with pytest.raises(ImplementationError, match=r"model\.py is missing: put the file back"):
        load(str(copy)).check()


def test_a_missing_name_is_named(copy):
    file = copy / "budget.py"
    file.write_text(file.read_text(encoding="utf-8").replace("def count_parameters", "def count"), encoding="utf-8")
    with pytest.raises(ImplementationError, match=r"budget\.py has no count_parameters: put it back"):
        load(str(copy)).check()


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("import no_such_library", "line 1: importing the file fails with ModuleNotFoundError"),
        ("raise SystemExit(3)", "line 1: importing the file fails with SystemExit: 3"),
        ("1 / 0", "line 1: importing the file fails with ZeroDivisionError"),
    ],
)
def test_an_import_that_fails_is_one_sentence(copy, line, says):
    file = copy / "modules.py"
    file.write_text(f"{line}\n{file.read_text(encoding='utf-8')}", encoding="utf-8")
    with pytest.raises(ImplementationError, match=says):
        load(str(copy)).check()


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"\xff\xfe# cafe\xe9", "modules.py is not UTF-16 text"),
        (b"x = 1\x00", "modules.py, line 1, holds a NUL byte"),
        (b"\xef\xbb\xbf" + (REFERENCE / "modules.py").read_bytes(), None),
        ((REFERENCE / "modules.py").read_bytes().replace(b"\n", b"\r\n"), None),
    ],
)
def test_encodings_and_line_ends(copy, data, says):
    (copy / "modules.py").write_bytes(data)
    if says is None:
        load(str(copy)).check()
    else:
        with pytest.raises(ImplementationError, match=says):
            load(str(copy)).check()


def test_every_name_of_the_contract_is_in_the_reference():
    reference = load(str(REFERENCE))
    for module, names in impl.CONTRACT.items():
        for name in names:
            assert getattr(reference, name).__module__.endswith(f".{module}")


def test_a_student_copy_needs_no_reference_and_no_grading(tmp_path):
    for folder in ("nanolm", "tests", "exercises_en"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(REFERENCE, tmp_path / "solved")
    environment = {**os.environ, "NANOLM_IMPL": "solved", "PYTHONPATH": str(tmp_path)}
    run = warm.python("-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=tmp_path, env=environment)
    assert run.returncode == 0, run.stdout
    assert str(tmp_path / "solved") in run.stdout


def test_no_student_file_names_reference_or_grading():
    for folder in ("tests", "nanolm"):
        for file in (ROOT / folder).glob("*.py"):
            lines = file.read_text(encoding="utf-8").splitlines()
            imports = [line for line in lines if line.strip().startswith(("import ", "from "))]
            assert not [line for line in imports if "reference" in line or "grading" in line], file
