"""`nbgrader autograde week06`: the two-zone grader's points in nbgrader's gradebook, whatever was handed in."""

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("nbgrader")

from course_in_nbgrader import SANDBOXED, Course, sample  # noqa: E402

from grading.demo import samples  # noqa: E402
from grading.grader.results import ResultsFolder  # noqa: E402
from grading.grader.run import grade_folder  # noqa: E402
from grading.grader.secret import read_secret  # noqa: E402
from grading.proof.attacks.attack import ARGUMENTS  # noqa: E402
from grading.week.autograde import converter  # noqa: E402

LOUD = """\
import torch
from torch import nn

class RMSNorm(nn.Module):
    def __init__(self, D, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(D))

    def forward(self, x):
        raise ValueError("<script>alert(1)</script> \\x1b[2J")

def ffn_dim(D, multiplier=1.0, multiple_of=256):
    return 1

class SwiGLU(nn.Module):
    pass

def rmsnorm_backward(x, weight, eps, upstream):
    return x, weight
"""
ANSWER = "The bills are equal: $3DF = 8D^2$. <script>alert(2)</script> $\\text{<script>alert(3)</script>}$"


def files_of(folder):
    """{path: digest} of everything below a folder."""
    return {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """A class of four, autograded by nbgrader's command; nobody changes it. (Course, what was handed in before)."""
    course = Course(tmp_path_factory.mktemp("graded") / "course")
    assert course.api().generate_assignment("week06")["success"]
    folder = course.hand_in("ada", sample("all_right"))
    notebook = json.loads((folder / "week06.ipynb").read_text(encoding="utf-8"))
    names = [cell["metadata"].get("nbgrader", {}).get("grade_id") for cell in notebook["cells"]]
    answer = notebook["cells"][names.index("ffn-width")]
    answer["source"] = ANSWER
    (folder / "week06.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    course.hand_in("bob", sample("five_mistakes"), notebook=b"<<<<<<<")
    course.hand_in("cay", sample("half_finished"), notebook=b"")
    course.hand_in("dan", {**sample("all_right"), "modules.py": LOUD})
    before = files_of(course.folder / "submitted")
    command = [str(Path(sys.executable).with_name("nbgrader")), "autograde", "week06"]
    run = subprocess.run(command, cwd=course.folder, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert course.api().generate_feedback("week06")["success"]
    return course, before


@pytest.fixture
def course(graded, tmp_path):
    """A copy of the class for a test that changes it."""
    return Course(shutil.copytree(graded[0].folder, tmp_path / "course"))


@pytest.fixture
def from_the_shelf(course, monkeypatch):
    """The grader's part takes no time: the results are those of the class's first grading."""
    results_folder = ResultsFolder(course.folder / "results" / "week06")
    results = {result["submission"]: result for result in results_folder.all(("ada", "bob", "cay", "dan"))}
    monkeypatch.setattr(converter, "ask", lambda submissions, *arguments: results)
    return results


def feedback(course, student):
    return (course.folder / "feedback" / student / "week06" / "week06.html").read_text(encoding="utf-8")


@pytest.mark.proof
def test_nbgrader_has_the_points_of_grading_run(graded, tmp_path):
    for student, name in (("ada", "all_right"), ("bob", "five_mistakes")):
        shutil.copytree(samples.folder(name), tmp_path / "class" / student / "exercises_en")
    secret = read_secret(str(graded[0].folder / "secret.txt"))
    assert grade_folder(tmp_path / "class", tmp_path / "out", secret, SANDBOXED, 2, ARGUMENTS) == 0
    scores = graded[0].scores()
    for result in ResultsFolder(tmp_path / "out").all(("ada", "bob")):
        earned = dict.fromkeys(scores["ada"], 0.0)
        for test in result["tests"]:
            earned[test["part"]] += test["earned"]
        assert scores[result["submission"]] == earned
        assert ResultsFolder(graded[0].folder / "results" / "week06").all([result["submission"]]) == [result]
    assert scores["ada"]["rope"] > 0 and scores["ada"] != scores["bob"]


def test_what_was_handed_in_stays_as_it_was(graded):
    assert files_of(graded[0].folder / "submitted") == graded[1]


def test_a_submission_without_a_readable_notebook_is_graded_and_told(graded):
    assert graded[0].scores()["bob"]["rope"] > 0
    for student, words in (("bob", "is not a notebook"), ("cay", "was not handed in")):
        assert words in feedback(graded[0], student)
        assert words in graded[0].autograded(student).read_text(encoding="utf-8")


def test_an_answer_waits_for_a_person_and_an_untouched_one_has_no_points(graded):
    with graded[0].gradebook() as book:
        grades = {grade.name: grade for grade in book.find_submission("week06", "ada").notebooks[0].grades}
        assert grades["ffn-width"].needs_manual_grade and grades["ffn-width"].auto_score is None
        assert grades["tying"].auto_score == 0 and not grades["tying"].needs_manual_grade
        assert not any(grade.needs_manual_grade for name, grade in grades.items() if grade.cell.cell_type == "code")


def test_answers_that_could_not_be_read_wait_for_a_person(graded):
    with graded[0].gradebook() as book:
        for student in ("bob", "cay"):
            for grade in book.find_submission("week06", student).notebooks[0].grades:
                written = grade.cell.cell_type == "markdown"
                assert grade.needs_manual_grade is written and (grade.auto_score is None) is written
            comments = book.find_submission("week06", student).notebooks[0].comments
            assert comments and not any(comment.auto_comment for comment in comments)


def test_no_student_code_runs_in_nbgraders_process(graded):
    notebook = json.loads(graded[0].autograded("ada").read_text(encoding="utf-8"))
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", ())]
    assert {output["output_type"] for output in outputs} == {"display_data", "execute_result"}
    plain = [cell for cell in notebook["cells"] if cell["cell_type"] == "code" and not cell["metadata"].get("nbgrader")]
    assert plain and all(cell["outputs"] == [] for cell in plain)


def test_feedback_says_what_happened_and_lets_nothing_through(graded):
    page = feedback(graded[0], "dan")
    assert "test_rmsnorm_does_not_center" in page and "python -m nanolm hint" in page
    assert "&lt;script&gt;alert(1)" in page and "\\x1b[2J" in page
    for student in ("ada", "dan"):
        page = feedback(graded[0], student)
        assert "<script" not in page and "\x1b" not in page and "javascript:" not in page
    assert "alert(2)" in feedback(graded[0], "ada") and "<math" in feedback(graded[0], "ada")


def test_graders_see_the_rubrics_and_students_do_not(graded):
    rubric = "the condition is that the parameters are equal"
    assert rubric in graded[0].autograded("ada").read_text(encoding="utf-8")
    for folder in ("release", "feedback"):
        for path in (graded[0].folder / folder).rglob("*"):
            assert not path.is_file() or rubric not in path.read_text(encoding="utf-8")


def test_the_secret_is_nowhere_else(graded):
    secret = (graded[0].folder / "secret.txt").read_bytes().strip()
    found = [path.name for path in graded[0].folder.rglob("*") if path.is_file() and secret in path.read_bytes()]
    assert found == ["secret.txt"]


def test_a_second_run_changes_nothing(course):
    before = files_of(course.folder / "autograded")
    said, well = course.autograde()
    assert well and sum("Skipping existing" in line for line in said) == 4
    assert files_of(course.folder / "autograded") == before


def test_a_grading_that_was_stopped_is_taken_up(course, from_the_shelf):
    cut = course.autograded("ada")
    cut.chmod(0o644)
    cut.write_bytes(cut.read_bytes()[:5000])
    shutil.copy(course.folder / "release" / "week06" / "week06.ipynb", course.autograded("bob").with_suffix(".new"))
    course.autograded("bob").with_suffix(".new").replace(course.autograded("bob"))  # made sound, and not graded yet
    said, well = course.autograde()
    assert well and sum("Skipping existing" in line for line in said) == 2
    for name in ("ada", "bob"):
        assert "week" in json.loads(course.autograded(name).read_text(encoding="utf-8"))["metadata"]


def test_changed_code_is_graded_again_and_nobody_else(course):
    before = course.scores()
    theirs = course.folder / "submitted" / "dan" / "week06" / "exercises_en"
    shutil.copy(samples.folder("all_right") / "modules.py", theirs)
    said, well = course.autograde("dan")
    assert well and course.scores()["dan"] == before["ada"]
    assert {**course.scores(), "dan": None} == {**before, "dan": None}


def grades_of(book, student):
    return {grade.name: grade for grade in book.find_submission("week06", student).notebooks[0].grades}


def test_force_keeps_what_a_person_gave(course, from_the_shelf):
    with course.gradebook() as book:
        grades = grades_of(book, "ada")
        grades["ffn-width"].manual_score, grades["rope"].manual_score, grades["cache"].extra_credit = 3.0, 1.0, 2.5
        grades["ffn-width"].needs_manual_grade = False
        book.db.commit()
    _, well = course.autograde("ada", force=True)
    found = course.scores()["ada"]
    assert well and (found["ffn-width"], found["rope"], found["cache"]) == (3.0, 1.0, 2.5)
    with course.gradebook() as book:
        assert not grades_of(book, "ada")["ffn-width"].needs_manual_grade


def test_a_mark_by_hand_waits_for_a_second_look_where_the_work_has_changed(course, from_the_shelf):
    with course.gradebook() as book:
        grades_of(book, "ada")["ffn-width"].manual_score = 3.0
        grades_of(book, "ada")["ffn-width"].needs_manual_grade = False
        book.db.commit()
    notebook = course.folder / "submitted" / "ada" / "week06" / "week06.ipynb"
    notebook.write_text(notebook.read_text(encoding="utf-8").replace("The bills are", "Bills are"), encoding="utf-8")
    _, well = course.autograde("ada")
    with course.gradebook() as book:
        grade = grades_of(book, "ada")["ffn-width"]
        assert well and grade.needs_manual_grade and grade.manual_score == 3.0


def test_a_bonus_is_added_and_the_maximum_stays(course, from_the_shelf):
    tests = from_the_shelf["ada"]["tests"]
    tests.append({**tests[0], "name": "test_cache_x", "part": "cache", "points": 7, "earned": 7, "state": "passed"})
    before = course.scores()["ada"]
    _, well = course.autograde("ada")
    assert well and course.scores()["ada"] == {**before, "cache": 7.0}
    with course.gradebook() as book:
        submission = book.find_submission("week06", "ada")
        assert submission.score == sum(before.values()) + 7 and submission.max_score == 130


def test_a_grader_error_is_never_a_zero(course, from_the_shelf):
    shutil.rmtree(course.folder / "autograded" / "bob")
    with course.gradebook() as book:
        book.remove_submission("week06", "bob")
    from_the_shelf["bob"] |= {"state": "grader error", "error": "the disk is on fire", "points": None, "tests": []}
    said, well = course.autograde()
    assert not well and any("bob stays ungraded, the grader failed: the disk is on fire" in line for line in said)
    assert not any("Traceback" in line for line in said)
    assert "bob" not in course.scores() and not course.autograded("bob").exists()


def test_points_that_the_tests_do_not_give_stop_the_grading(course, from_the_shelf):
    with (course.folder / "nbgrader_config.py").open("a", encoding="utf-8") as config:
        config.write("c.WeekAutograde.tests = ['tests']\n")
    said, well = course.autograde("ada")
    assert not well and any("the released notebook gives 15 points for rmsnorm" in line for line in said)


@pytest.mark.parametrize(
    "lines, words",
    [
        ("c.WeekAutograde.secret_file = 'nowhere'", "nothing is graded: the secret nowhere is missing"),
        ("c.CourseDirectory.release_directory = 'nowhere'", "run  nbgrader generate_assignment week06  first"),
    ],
)
def test_what_keeps_the_grader_from_grading_is_one_sentence(course, lines, words):
    with (course.folder / "nbgrader_config.py").open("a", encoding="utf-8") as config:
        config.write(f"{lines}\n")
    said, well = course.autograde("ada", force=True)
    assert not well and words in said[-1] and not any("Traceback" in line for line in said)


def test_formgraders_button_grades_one_student(course, from_the_shelf):
    found = course.api().autograde("week06", "dan")
    assert found["success"] and "Autograding" in found["log"] and "ada" not in found["log"]


def change_source(course, change):
    """The course's source notebook after a change of its cells."""
    path = course.folder / "source" / "week06" / "week06.ipynb"
    notebook = json.loads(path.read_text(encoding="utf-8"))
    change(notebook["cells"])
    path.write_text(json.dumps(notebook), encoding="utf-8")


def a_new_question(cells):
    twin = json.loads(json.dumps(next(cell for cell in cells if cell["metadata"].get("nbgrader", {}).get("solution"))))
    twin["id"], twin["metadata"]["nbgrader"]["grade_id"] = "another", "another-question"
    cells.append(twin)


def a_question_less(cells):
    del cells[next(n for n, cell in enumerate(cells) if cell["metadata"].get("nbgrader", {}).get("solution"))]


@pytest.mark.parametrize("change", [a_new_question, a_question_less])
def test_a_changed_assignment_keeps_the_old_release_and_says_what_to_do(course, change):
    before = files_of(course.folder / "release")
    change_source(course, change)
    said = course.api().generate_assignment("week06", force=True)
    assert not said["success"] and "Traceback" not in said["log"]
    assert "4 submissions hang on those: nothing is generated" in said["log"] and "Put the cells back" in said["log"]
    assert files_of(course.folder / "release") == before and before


def test_a_release_that_fails_or_is_stopped_leaves_the_old_one(course, monkeypatch):
    before = files_of(course.folder / "release")
    app = course.api()
    monkeypatch.setattr("nbgrader.preprocessors.LockCells.preprocess_cell", lambda *_: 1 / 0)
    assert not app.generate_assignment("week06", force=True)["success"]
    assert files_of(course.folder / "release") == before
    monkeypatch.undo()
    (course.folder / "release" / "week06").rename(course.folder / "release" / ".week06.kept")
    assert course.api().generate_assignment("week06", force=True)["success"]
    assert not (course.folder / "release" / ".week06.kept").exists()
    assert {path.name for path in files_of(course.folder / "release")} == {path.name for path in before}


def test_a_text_may_change_after_submissions(course):
    change_source(course, lambda cells: cells[0].update(source="# Another title"))
    assert course.api().generate_assignment("week06", force=True)["success"]
    assert "Another title" in (course.folder / "release" / "week06" / "week06.ipynb").read_text(encoding="utf-8")
