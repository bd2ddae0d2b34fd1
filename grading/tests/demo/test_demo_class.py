"""The demo class: 30 submissions as Canvas gives them, the same every time, each as its row says."""

import csv
import io
import json
import zipfile

import nbformat
import pytest
import warm

from grading.demo import made_up_class
from grading.demo.made_up_class import lms, notebooks, people, programs
from grading.demo.made_up_class.people import ABSENT, CLASS
from grading.paths import ROOT
from nanolm.impl import CONTRACT

BY_ID = {student.id: student for student in CLASS}
MEMBERS = {f"{module}.py" for module in CONTRACT}


def marked(kind, grade_id, points, **marks):
    """A cell as nbgrader's release writes it."""
    cell = nbformat.v4.new_markdown_cell("YOUR ANSWER HERE") if kind == "text" else nbformat.v4.new_code_cell("pass")
    about = {"schema_version": 3, "grade_id": grade_id, "points": points, "grade": True, "locked": kind != "text"}
    cell["metadata"]["nbgrader"] = {**about, "solution": kind == "text", "task": False, **marks}
    cell["id"] = grade_id
    return cell


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """A released notebook in small: three parts, three written answers."""
    cells = [marked("code", part, 10) for part in ("rmsnorm", "rope", "attention")]
    cells += [marked("text", name, 5) for name in ("derive-ffn-dim", "kv-cache-size", "interview")]
    file = tmp_path_factory.mktemp("release") / "week06.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), file)
    return file


@pytest.fixture(scope="module")
def written(released, tmp_path_factory):
    out = tmp_path_factory.mktemp("class")
    made_up_class.write(released, out)
    return out


def entries(written):
    with zipfile.ZipFile(written / made_up_class.ARCHIVE) as file:
        return {name: file.read(name) for name in file.namelist()}


def of(written, student):
    """{name: bytes} of what one student has uploaded."""
    user = lms.FIRST_USER + list(BY_ID).index(student)
    return {name: data for name, data in entries(written).items() if f"_{user}_" in name}


def inside(written, student):
    (data,) = of(written, student).values()
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        return {name: file.read(name) for name in file.namelist()}


def rows_of(file):
    return list(csv.DictReader(io.StringIO(file.read_text(encoding="utf-8"))))


def test_thirty_hand_in_and_each_is_on_the_roster(written):
    rows, times = rows_of(written / made_up_class.ROSTER), rows_of(written / made_up_class.TIMES)
    assert len(CLASS) == 30 and [row["id"] for row in rows] == [student.id for student in (*CLASS, *ABSENT)]
    assert [row["student"] for row in times] == [student.id for student in CLASS]
    users = {name.replace("_LATE", "").split("_")[1] for name in entries(written)}
    assert [row["id"] for row in rows if row["lms_user_id"] not in users] == ["farid"]
    assert rows[2]["last_name"] == "Lefèvre-Petit" and rows[2]["email"] == "chloe@uni.example"


def test_the_same_notebook_gives_the_same_bytes(written, released, tmp_path):
    made_up_class.write(released, tmp_path)
    for file in (made_up_class.ARCHIVE, made_up_class.ROSTER, made_up_class.TIMES, made_up_class.EXPECTED):
        assert (tmp_path / file).read_bytes() == (written / file).read_bytes()


def test_the_archive_names_its_entries_as_canvas_does(written):
    names = list(entries(written))
    assert "virtanenaada_1001_50001_week06.zip" in names
    assert any(name.startswith("ibáñezhugo_LATE_") for name in names)
    assert sum("_LATE_" in name for name in names) == sum(student.late for student in CLASS) == 5
    assert list(of(written, "priya"))[0].endswith("_week06-1.zip")
    assert {name.split("_", 3)[3] for name in of(written, "bao")} == MEMBERS | {"__init__.py", "week06.ipynb"}


def test_code_stands_beside_the_notebook_in_one_folder(written):
    names = set(inside(written, "aada"))
    assert names == {"week06/week06.ipynb", *(f"week06/exercises_en/{name}" for name in MEMBERS | {"__init__.py"})}
    assert set(inside(written, "jin")) == {name.removeprefix("week06/") for name in names}
    assert not any("exercises_en" in name for name in inside(written, "elif"))
    assert any(name.startswith("../") for name in inside(written, "xenia"))


def test_windows_line_ends_are_windows_line_ends(written):
    text = inside(written, "chloe")["week06/exercises_en/rope.py"]
    assert text.count(b"\r\n") == text.count(b"\n") > 40


@pytest.mark.parametrize("student", [student for student in CLASS if student.program], ids=lambda student: student.id)
def test_every_file_is_python_without_the_courses_marks_unless_its_row_says_otherwise(student):
    files = programs.files(student.program)
    assert files.keys() >= MEMBERS
    for name, text in files.items():
        assert "# solution" not in text and "# exercise:" not in text
        if name == student.program.broken:
            with pytest.raises(SyntaxError):
                compile(text, name, "exec")
        elif name in MEMBERS:
            compile(text, name, "exec")


def test_a_near_copy_has_other_names_and_the_same_program():
    one, other = (programs.files(BY_ID[name].program) for name in ("gisela", "hugo"))
    assert one["modules.py"] != other["modules.py"] and one["attention.py"] != other["attention.py"]
    for name in MEMBERS:
        codes = [compile(files[name], name, "exec") for files in (one, other)]
        assert shapes(codes[0]) == shapes(codes[1]), name


def shapes(code):
    """The instructions of a program, without names of variables and without lines."""
    inner = [shapes(constant) for constant in code.co_consts if hasattr(constant, "co_code")]
    return code.co_code, code.co_name, inner


def test_students_write_the_right_parts_in_their_own_ways():
    own = [student for student in CLASS if student.program and student.program.style and student.id != "hugo"]
    texts = [programs.files(student.program)["attention.py"].split("class Grouped")[1] for student in own]
    assert len(own) > 20 and len(set(texts)) == len(texts)


def test_what_is_open_is_the_stub():
    files = programs.files(BY_ID["rosa"].program)
    assert files["model.py"].count("raise NotImplementedError") == 1
    assert files["attention.py"].count("raise NotImplementedError") == 2
    assert programs.files(BY_ID["tala"].program)["rope.py"] == (ROOT / "exercises_en" / "rope.py").read_text("utf-8")


def test_answers_stand_in_the_cells_for_text(released):
    notebook = json.loads(released.read_text(encoding="utf-8"))
    answers = {
        cell["id"]: cell["source"] for cell in notebooks.answered(notebook, "good")["cells"] if "solution" in str(cell)
    }
    assert "8D / 3" in answers["derive-ffn-dim"] and "G = N / K" in answers["kv-cache-size"]
    assert "RMSNorm" in answers["interview"] and answers["rmsnorm"] == ["pass"]
    assert "YOUR ANSWER HERE" in json.dumps(notebooks.answered(notebook, "none"))


def test_every_harm_is_in_the_class_and_harms(released):
    notebook = json.loads(released.read_text(encoding="utf-8"))
    sound = notebooks.handed_in(notebook, "good", "")
    harms = {student.harm for student in CLASS} - {""}
    assert harms == set(notebooks.HARMS) | set(notebooks.OF_BYTES)
    for harm in harms:
        assert notebooks.handed_in(notebook, "good", harm) != sound, harm
    for harm in notebooks.HARMS:
        nbformat.reads(notebooks.handed_in(notebook, "good", harm)["week06.ipynb"].decode(), as_version=4)
    for harm in ("empty", "not json", "truncated", "conflict"):
        with pytest.raises(ValueError):
            json.loads(notebooks.handed_in(notebook, "good", harm)["week06.ipynb"])


def result(*tests):
    """A result of the grader in small: (name, part, earned)."""
    shown = [
        {"name": name, "part": part, "earned": earned, "state": "passed" if earned else "failed"}
        for name, part, earned in tests
    ]
    return {"points": sum(test["earned"] for test in shown), "tests": shown}


@pytest.mark.parametrize(
    ("student", "graded", "said"),
    [
        ("aada", result(("test_rope_a", "rope", 100), ("test_cache_a", "cache", 9)), []),
        ("aada", result(("test_rope_a", "rope", 99)), ["aada: 99 points of the core, not 100"]),
        ("aada", None, ["aada: there is no grade"]),
        ("tala", None, []),
        ("tala", {"points": None, "tests": []}, ["tala: there is no grade"]),
        ("ines", result(), ["ines: 0 points of the core, but some of it is right and some wrong"]),
        (
            "ines",
            result(("test_rmsnorm_does_not_center", "rmsnorm", 5)),
            ["ines: test_rmsnorm_does_not_center passed in spite of its mistake"],
        ),
    ],
)
def test_what_is_not_as_expected_is_said(student, graded, said):
    known = {student: made_up_class.expected()[student]}
    assert list(made_up_class.disagreements(known, {student: graded} if graded else {})) == said


def test_expectations_name_tests_and_late_ones():
    known = made_up_class.expected()
    assert known["jin"]["not_passed"] == ["test_attention_repeat_kv_keeps_neighbours_together"]
    assert sum(entry["core"] == 100 for entry in known.values()) == 7
    assert {name for name, entry in known.items() if entry["core"] == 0} == {"sven", "tala", "elif"}
    assert known["hugo"]["late"] and not known["emeka"]["late"] and people.DUE.endswith("+01:00")


def test_a_file_that_is_no_notebook_is_one_sentence(tmp_path):
    (tmp_path / "x.ipynb").write_text("no", encoding="utf-8")
    for file in ("x.ipynb", "none.ipynb"):
        run = warm.python("-m", "grading", "demo-class", tmp_path / file, tmp_path / "out")
        assert run.returncode == 1 and "can't be used as the released notebook" in run.stderr
        assert run.stderr.count("\n") == 1 and not (tmp_path / "out").exists()
