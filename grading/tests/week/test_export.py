"""Exports: who has a final mark, what each platform reads, and what keeps a grade from leaving the house."""

import csv
import io
import json
import subprocess
import sys
from types import SimpleNamespace

import pytest
from small_course import SmallCourse, broken, result

from grading.__main__ import main
from grading.paths import ROOT
from grading.week.course import with_our_path
from grading.week.course_folder import Course
from grading.week.exports import plugins
from grading.week.exports.command import export

# nbgrader's own, about each new submission; harmless
pytestmark = pytest.mark.filterwarnings("ignore:Object of type")
EVERY = ("grades.csv", "canvas.csv", "moodle.csv")


@pytest.fixture
def course(tmp_path):
    return SmallCourse(tmp_path)


@pytest.fixture
def run(capsys):
    """The command on a course: its exit code, and what it says."""

    def of(folder):
        capsys.readouterr()
        code = main(["export", "--course", str(folder)])
        said = capsys.readouterr()
        return SimpleNamespace(returncode=code, stdout=said.out, stderr=said.err)

    return of


def exported(course, name="grades.csv"):
    export(Course(course.folder), course.folder / "exports")
    return read(course.folder / "exports" / name)


def read(file):
    return list(csv.DictReader(io.StringIO(file.read_text(encoding="utf-8"))))


def test_a_mark_is_the_score_less_the_penalty_and_never_below_0(course):
    course.add("ada", 9, 3, time="2026-11-28 10:00:00")
    course.add("bob", 1, 0, time="2026-12-24 10:00:00")
    course.add("eve", 1, 0, time="2026-11-27 22:58:00")
    rows = exported(course)
    assert [(row["student_id"], row["raw_score"], row["score"]) for row in rows] == [
        ("ada", "12.00", "10.80"), ("bob", "1.00", "0.00"), ("eve", "1.00", "1.00"),
    ]  # fmt: skip
    assert rows[0]["max_score"] == "15.00" and rows[0]["timestamp"].startswith("2026-11-28 10:00")


def test_the_penalty_is_of_the_marks_of_now(course):
    course.add("ada", 9, 0, time="2026-11-28 10:00:00")
    assert exported(course)[0]["late_submission_penalty"] == "0.90"
    with course.gradebook() as book:
        book.find_grade("interview", "week06", "week06", "ada").manual_score = 4
        book.db.commit()
    assert exported(course)[0]["late_submission_penalty"] == "1.30"


def with_limit(course, most):
    """The course with a limit of the bonus in its configuration."""
    with (course.folder / "nbgrader_config.py").open("a", encoding="utf-8") as file:
        file.write(f"c.BonusPolicy.most = {most}\n")


def test_core_and_bonus_are_said_apart_and_all_of_it_counts_unless_it_is_limited(course, run):
    course.add("ada", 11, 4, bonus=8)
    course.add("bob", 5, 4, bonus=2)
    said = run(course.folder)
    assert "marks reach 23 of 15, as all of the bonus counts: c.BonusPolicy.most" in said.stdout
    rows = read(course.folder / "exports" / "grades.csv")
    assert [(row["core_score"], row["bonus_score"], row["score"]) for row in rows] == [
        ("15.00", "8.00", "23.00"), ("9.00", "2.00", "11.00"),
    ]  # fmt: skip
    output = json.loads((course.folder / "exports/gradescope/ada/results.json").read_text(encoding="utf-8"))["output"]
    assert "in all 15 points of the week's own and 8 of bonus" in output


def test_a_limit_of_the_bonus_holds_in_every_export_and_lateness_is_of_what_counts(course, run):
    with_limit(course, 3.0)
    course.add("ada", 11, 4, bonus=8)
    course.add("bob", 11, 4, bonus=2)
    course.add("eve", 11, 4, bonus=5, time="2026-11-28 10:00:00")
    said = run(course.folder)
    assert "of the bonus at most 3 points count (c.BonusPolicy.most)" in said.stdout
    assert "marks reach" not in said.stdout
    rows = read(course.folder / "exports" / "grades.csv")
    assert [(row["raw_score"], row["late_submission_penalty"], row["score"]) for row in rows] == [
        ("18.00", "0.00", "18.00"), ("17.00", "0.00", "17.00"), ("18.00", "1.80", "16.20"),
    ]  # fmt: skip
    assert [row["week06"] for row in read(course.folder / "exports" / "moodle.csv")] == ["18.00", "17.00", "16.20"]
    assert "18.00" in (course.folder / "exports" / "canvas.csv").read_text(encoding="utf-8").splitlines()[2]


def test_a_limit_of_none_at_all_leaves_the_core(course):
    with_limit(course, 0)
    course.add("ada", 11, 4, bonus=8)
    assert [(row["score"], row["bonus_score"]) for row in exported(course)] == [("15.00", "0.00")]


@pytest.mark.parametrize("most", ["-1.0", "'ten'"])
def test_a_limit_that_is_none_is_one_sentence(course, run, most):
    with_limit(course, most)
    course.add("ada", 11, 4, bonus=8)
    said = run(course.folder)
    assert said.returncode == 1 and said.stderr.count("\n") == 1
    assert said.stderr.startswith("Nothing is exported: ") and "most" in said.stderr


def test_canvas_reads_who_and_how_many_points(course):
    course.add("ada", 11, 4, first="Ada", last="Lovelace, Countess", lms="1001")
    lines = (exported(course), (course.folder / "exports" / "canvas.csv").read_text(encoding="utf-8").splitlines())[1]
    assert lines == [
        "Student,ID,SIS User ID,SIS Login ID,Section,week06",
        "Points Possible,,,,,15.00",
        '"Lovelace, Countess, Ada",1001,,ada,,15.00',
    ]


def test_moodle_reads_number_and_address(course):
    course.add("zoe", 11, 2.25, first="Zoë", last="Ørsted")
    assert exported(course, "moodle.csv") == [
        {"ID number": "zoe", "Email address": "zoe@uni.example", "First name": "Zoë", "Last name": "Ørsted",
         "week06": "13.25"}
    ]  # fmt: skip


def test_gradescope_reads_tests_written_answers_and_the_total(course):
    graded = result("ada", {"test_rmsnorm_does_not_center": "failed"})
    course.add("ada", 7, 3, time="2026-11-28 10:00:00", graded=graded)
    course.add("bob")
    exported(course)
    folder = course.folder / "exports" / "gradescope"
    found = json.loads((folder / "ada" / "results.json").read_text(encoding="utf-8"))
    assert found["score"] == 9 and "late submission: 1 points taken" in found["output"]
    shown = {test["name"]: (test["score"], test["max_score"]) for test in found["tests"]}
    assert shown["rmsnorm: test_rmsnorm_does_not_center"] == (0, 3)
    assert shown["written: interview"] == (3, 4) and len(shown) == 5
    assert not (folder / "bob").exists()


def test_an_answer_that_nobody_graded_is_named_and_never_a_zero(course, run):
    course.add("ada", 11)
    course.add("bob", 11, 4)
    said = run(course.folder)
    assert said.returncode == 0, said.stderr
    assert "left out, needs manual grading (interview): ada" in said.stdout
    for name in EVERY:
        text = (course.folder / "exports" / name).read_text(encoding="utf-8")
        assert "ada" not in text and "bob" in text
    assert [path.name for path in (course.folder / "exports" / "gradescope").iterdir()] == ["bob"]


def test_nothing_handed_in_is_a_0_that_is_said_and_collected_work_is_not(course, run):
    course.add("ada")
    course.add("bob")
    course.add("eve")
    course.hand_in("bob", {"rope.py": "x = 1\n"})
    table = "who,what,what to do,collected\neve,week06.zip is cut off,ask again,no\nada,no time,ask,yes\n"
    (course.folder / "intake-week06.csv").write_text(table, encoding="utf-8")
    said = run(course.folder)
    assert "handed in nothing and has 0: ada" in said.stdout
    assert "left out, collected, but not autograded yet: bob" in said.stdout
    assert "left out, what came in could not be collected: eve" in said.stdout
    assert [(row["student_id"], row["score"]) for row in read(course.folder / "exports" / "grades.csv")] == [
        ("ada", "0.00")
    ]


def test_a_grader_error_blocks_every_export(course, run):
    course.add("ada", 11, 4)
    course.add("bob", 0, 4, graded=broken("bob"))
    said = run(course.folder)
    assert said.returncode == 1 and not list((course.folder / "exports").iterdir())
    assert said.stderr == (
        "Nothing is exported: the grader failed on bob, which is never a student's zero: "
        "run `nbgrader autograde week06 --force` for them, then export again.\n"
    )


@pytest.mark.parametrize("name", ["=HYPERLINK(A1)", "+1", "-1", "@SUM(A1)", "\t=1", "\r\n=1"])
def test_no_name_is_a_formula(course, name):
    course.add("ada", 11, 4, first=name, last=name)
    exported(course)
    for file in EVERY:
        for row in csv.reader(io.StringIO((course.folder / "exports" / file).read_text(encoding="utf-8"))):
            assert not [cell for cell in row if cell.lstrip().startswith(("=", "+", "-", "@"))], file
            assert not [cell for cell in row if "\n" in cell or "\r" in cell or "\t" in cell]


def test_the_same_gradebook_gives_the_same_files(course):
    course.add("bob", 9, 3)
    course.add("ada", 11, 4)
    exported(course)
    first = contents(course)
    exported(course)
    assert contents(course) == first and len(first) == 5
    assert [row["student_id"] for row in exported(course)] == ["ada", "bob"]


def contents(course):
    return {path: path.read_bytes() for path in (course.folder / "exports").rglob("*") if path.is_file()}


def test_a_file_is_written_whole_or_not_at_all(course, monkeypatch):
    course.add("ada", 11, 4)
    exported(course)
    before = contents(course)
    with course.gradebook() as book:
        book.find_grade("interview", "week06", "week06", "ada").manual_score = 1
        book.db.commit()
    monkeypatch.setattr("grading.grader.results.os.replace", lambda *_: (_ for _ in ()).throw(OSError(28, "no space")))
    with pytest.raises(plugins.ExportError, match="can't be written .no space.: name another place"):
        exported(course)
    assert {path: before[path] for path in contents(course) if path in before} == before


def nbgrader_export(course, *more):
    """`nbgrader export` in the course's folder."""
    return subprocess.run(
        [sys.executable, "-m", "nbgrader", "export", *more],
        cwd=course.folder, capture_output=True, text=True, encoding="utf-8",
    )  # fmt: skip


def test_nbgraders_own_export_is_unchanged_and_agrees(course):
    course.add("ada", 9, 3, time="2026-11-28 10:00:00")
    (ours,) = exported(course)
    assert nbgrader_export(course).returncode == 0
    (own,) = read(course.folder / "grades.csv")
    assert list(ours) == [*own, "core_score", "bonus_score"]
    for title in own:
        same = own[title] == ours[title] or float(own[title]) == float(ours[title])
        assert same, title


def test_nbgraders_command_takes_our_exporters(course):
    course.add("ada", 11, 4)
    course.add("bob", 0, 0, graded=broken("bob"))
    exporters = ROOT / "grading" / "week" / "course_template" / "exporters.py"
    (course.folder / "exporters.py").write_text(with_our_path(exporters), encoding="utf-8")
    said = nbgrader_export(course, "--exporter=exporters.MoodleExporter")
    assert said.returncode == 1 and "Nothing is exported: the grader failed on bob" in said.stderr
    assert "Traceback" not in said.stderr and not (course.folder / "moodle.csv").exists()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"assignment": ["week07"]}, "the gradebook has no assignment week07"),
        ({"student": ["eve"]}, "the gradebook has no student eve"),
        ({"to": "/proc/x/y.csv"}, "can't be written"),
    ],
)
def test_what_can_not_be_exported_is_one_sentence(course, asked, said):
    from nbgrader.apps import ExportApp

    course.add("ada", 11, 4)
    app = ExportApp(config=Course(course.folder).config)
    app.coursedir = Course(course.folder).directory
    with course.gradebook() as book, pytest.raises(plugins.ExportError, match=said):
        plugins.CanvasExporter(parent=app, **asked).write(book)


def test_a_result_that_is_not_whole_is_one_sentence(course, run):
    course.add("ada", 11, 4)
    (course.folder / "results" / "week06" / "results" / "ada.json").write_text("{", encoding="utf-8")
    said = run(course.folder)
    assert said.returncode == 1 and "ada.json is not whole" in said.stderr and said.stderr.count("\n") == 1


def test_a_folder_that_is_no_course_is_one_sentence(tmp_path, run):
    said = run(tmp_path)
    assert said.returncode == 1 and "is no course folder" in said.stderr and said.stderr.count("\n") == 1


def test_nobody_has_a_0_while_work_lies_there_that_has_no_owner(course, run):
    course.add("ada")
    course.add("bob", 11, 4)
    table = "who,what,what to do,collected,source\nMr X,not on the roster,rename it,no owner,there\n"
    (course.folder / "intake-week06.csv").write_text(table, encoding="utf-8")
    said = run(course.folder)
    assert "left out, work came in of which it is not settled whose it is" in said.stdout and ": ada" in said.stdout
    assert [row["student_id"] for row in read(course.folder / "exports" / "grades.csv")] == ["bob"]
