"""The release: what students get is whole, is nothing else, and works where nothing else is."""

import ast
import json
import re
import tomllib
import zipfile
from types import SimpleNamespace

import pytest

from grading.authoring.stubs import generate
from grading.paths import REFERENCE, ROOT
from grading.week.release import bundle, command, release, trial
from grading.week.release.errors import LeakError, ReleaseError
from nanolm.config import PRESETS


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """One release, as the command makes it."""
    return release.make_release(tmp_path_factory.mktemp("release"))


def contents(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in release._files_of(folder)}


@pytest.fixture(scope="module")
def files(made):
    return contents(made.folder)


@pytest.fixture(scope="module")
def readme(files):
    return files["README.md"].decode()


@pytest.mark.proof
def test_folder_zip_and_nbgrader_release_hold_the_same_files(made, files):
    with zipfile.ZipFile(made.zip) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == {
            f"{bundle.NAME}/{path}": data for path, data in files.items()
        }
    assert contents(made.course / "release" / "week06") == files


def test_the_same_tree_gives_the_same_bytes(made, files):
    assert bundle.zipped(dict(reversed(files.items()))) == made.zip.read_bytes()
    with zipfile.ZipFile(made.zip) as archive:
        assert {entry.date_time for entry in archive.infolist()} == {bundle.LONG_AGO}
        assert archive.namelist() == sorted(archive.namelist())


def test_the_bundle_is_whole(files):
    expected = {"week06.ipynb", "README.md", "LICENSE", "pyproject.toml", "constraints.txt", "requirements-weights.txt"}
    expected |= {"set_up.py"}
    expected |= {f"exercises_en/{name}" for name in generate()}
    expected |= {path.relative_to(ROOT).as_posix() for path in (ROOT / "notebooks").glob("*.ipynb")}
    for folder, kinds in (("tests", ("*.py", "*.toml", "*.safetensors")), ("nanolm", ("*.py",))):
        expected |= {path.relative_to(ROOT).as_posix() for kind in kinds for path in (ROOT / folder).rglob(kind)}
    assert set(files) == expected


def test_exercises_are_the_stubs_even_where_this_copy_is_solved(files):
    assert {name: files[f"exercises_en/{name}"].decode() for name in generate()} == generate()


def test_the_notebook_is_the_one_that_nbgrader_releases(files):
    cells = json.loads(files["week06.ipynb"])["cells"]
    answers = [cell for cell in cells if cell["metadata"].get("nbgrader", {}).get("solution")]
    assert answers and all("YOUR ANSWER HERE" in "".join(cell["source"]) for cell in answers)
    assert [cell for cell in cells if cell.get("outputs")] == []


def test_the_courses_secret_stays_with_the_course(made, files):
    secret = (made.course / "secret.txt").read_bytes().strip()
    assert secret and not [path for path, data in files.items() if secret in data or "secret" in path]


def test_nothing_imports_or_names_what_a_student_lacks(files):
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    lacking = re.compile(rf"\bgrading\b|\breference[/.]\w|NANOLM_IMPL=reference|`make |\bmake ({'|'.join(targets)})\b")
    said = {path: lacking.findall(data.decode()) for path, data in files.items() if not path.endswith("safetensors")}
    assert {path: found for path, found in said.items() if found} == {}
    for path, data in files.items():
        if path.endswith(".py"):
            for node in ast.walk(ast.parse(data)):
                modules = [a.name for a in node.names] if isinstance(node, ast.Import) else []
                modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                assert not [name for name in modules if name.split(".")[0] in ("grading", "reference")], path


def test_every_file_and_test_that_is_named_anywhere_is_there(files):
    texts = {path: data.decode() for path, data in files.items() if not path.endswith("safetensors")}
    tests = "".join(text for path, text in texts.items() if path.startswith("tests/test_"))
    there = set(files)
    for path, text in texts.items():
        named = set(re.findall(r"\b(?:nanolm|tests|notebooks|exercises_en)/[\w/]+\.\w+", text))
        named |= {f"tests/{name}" for name in re.findall(r"\btest_\w+\.py", text)}
        assert named <= there, path
        functions = set(re.findall(r"\btest_\w+\b(?!\.py)", text))
        known = {name for name in functions if f"def {name}(" in tests or f"tests/{name}.py" in there}
        assert functions == known, path


def test_every_path_in_the_readme_exists(files, readme):
    named = set(re.findall(r"`([\w./-]+(?:/|\.(?:py|txt|ipynb)))`", readme))
    named |= set(re.findall(r"-[cr] (\S+\.txt)", readme))
    named |= set(re.findall(r"\b(?:tests|notebooks|exercises_en)/\w+\.\w+", readme)) | {"LICENSE"}
    assert {"week06.ipynb", "exercises_en/", "tests/test_rmsnorm.py", "requirements-weights.txt"} <= named
    assert [name for name in sorted(named) if not any(path.startswith(name) for path in files)] == []


def test_every_command_in_the_readme_can_be_run(files, readme):
    found = re.findall(r"py(?:thon3?)? -m (\w+)(?: (\w+))?(?: (\S+))?", readme)
    assert {"pytest", "nanolm", "jupyter", "zipfile"} == {module for module, *_ in found}
    known = files["tests/machinery/hints.toml"].decode()
    for module, word, name in found:
        if module == "nanolm":
            assert word in ("check", "hint", "generate", "budget")
            assert word != "hint" or f'= "{name}"\n' in known
            assert word != "budget" or name in PRESETS
    assert re.findall(r"^    (\S+) set_up\.py (\S+)$", readme, re.M) == [("python3", "notebooks"), ("py", "notebooks")]


def test_every_test_and_sentence_that_the_readme_shows_is_there(files, readme):
    sources = "".join(data.decode() for path, data in files.items() if path.endswith(".py"))
    assert [name for name in re.findall(r"\btest_\w+(?!\w|\.py)", readme) if f"{name}(" not in sources
            and f"tests/{name}.py" not in files] == []  # fmt: skip
    example = re.search(r"cause  (.*)", readme)[1]
    assert example in sources and "can't read this line" in sources


def test_packages_are_the_projects_own_pins(files):
    assert files["constraints.txt"] == (ROOT / "constraints.txt").read_bytes()
    theirs = tomllib.loads(files["pyproject.toml"].decode())
    own = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert theirs["tool"]["pytest"] == own["tool"]["pytest"]
    assert set(theirs["tool"]) == {"set_up", "setuptools", "pytest"}
    parts, extras = theirs["tool"]["set_up"], theirs["project"]["optional-dependencies"]
    assert set(parts) == {"student", "notebooks"} and {*parts["notebooks"]} == {*extras, "requirements-weights.txt"}
    assert theirs["project"]["dependencies"] == own["project"]["dependencies"]


@pytest.mark.proof
def test_the_bundle_works_where_nothing_else_is(made, tmp_path):
    before, after = trial.try_out(made.zip, tmp_path, installed_here=True, say=lambda line: None)
    assert before.code == 1 and set(before.states) == {"not started", "waiting"}
    assert after.code == 0 and set(after.states) == {"passed"}
    assert sum(before.states.values()) == sum(after.states.values()) > 200


def test_a_bundle_that_lacks_its_library_fails_the_trial(files, tmp_path):
    archive = tmp_path / "lame.zip"
    archive.write_bytes(bundle.zipped({path: data for path, data in files.items() if not path.startswith("nanolm/")}))
    with pytest.raises(ReleaseError, match="not alone"):
        trial.try_out(archive, tmp_path / "room", installed_here=True, say=lambda line: None)


def test_a_readme_without_its_set_up_fails_the_trial(files, tmp_path):
    archive = tmp_path / "lame.zip"
    archive.write_bytes(bundle.zipped({**files, "README.md": b"# Good luck\n"}))
    with pytest.raises(ReleaseError, match="no set-up"):
        trial.try_out(archive, tmp_path / "room", installed_here=True)


def test_the_trial_runs_the_readmes_own_commands(readme):
    commands = trial.set_up_commands(readme)
    assert commands == ["python3 set_up.py notebooks", "source .venv/bin/activate"]


@pytest.fixture
def quick(monkeypatch):
    """A release without nbgrader's part, and what goes into it."""
    files = {"nanolm/x.py": b"x = 1\n", "README.md": b"Hello\n"}

    def in_nbgrader(course, files, released):
        bundle.write_folder(files, released)
        return files

    monkeypatch.setattr(release, "student_files", lambda: dict(files))
    monkeypatch.setattr(release, "set_up", lambda course: None)
    monkeypatch.setattr(release, "_release_in_nbgrader", in_nbgrader)
    return files


def test_a_leak_is_named_and_nothing_is_put_in_place(quick, tmp_path, capsys):
    quick["nanolm/x.py"] += (REFERENCE / "rope.py").read_bytes()
    with pytest.raises(LeakError):
        release.make_release(tmp_path)
    assert release._files_of(tmp_path) == []
    assert command.run(SimpleNamespace(out=tmp_path, try_it=False)) == 1
    said = capsys.readouterr().err
    for place in (f"{bundle.NAME}/nanolm", f"{bundle.NAME}.zip/{bundle.NAME}/nanolm", "week06/nanolm"):
        assert f"\n{place}/x.py, line 27: " in f"\n{said}"
    assert said.splitlines()[-1].startswith("No release: ") and "Traceback" not in said


def test_a_leak_leaves_the_last_release_as_it_was(quick, tmp_path):
    before = release.make_release(tmp_path).zip.read_bytes()
    quick["README.md"] += b"x.repeat_interleave(G, dim=1)\n"
    with pytest.raises(LeakError):
        release.make_release(tmp_path)
    assert (tmp_path / f"{bundle.NAME}.zip").read_bytes() == before


def test_what_is_not_of_a_release_is_not_lost(quick, tmp_path):
    mine = release.make_release(tmp_path).folder / "notes.txt"
    mine.write_text("mine", encoding="utf-8")
    with pytest.raises(ReleaseError, match="notes.txt is not of a release"):
        release.make_release(tmp_path)
    assert mine.read_text(encoding="utf-8") == "mine"


def test_a_file_beside_the_notebook_in_the_course_is_named(quick, tmp_path):
    stray = tmp_path / "course" / "release" / "week06" / "solution.txt"
    stray.parent.mkdir(parents=True)
    stray.touch()
    with pytest.raises(ReleaseError, match="solution.txt lies in the course's source/week06"):
        release.make_release(tmp_path)
