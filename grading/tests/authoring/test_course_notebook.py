"""The week's notebook: its points are the tests' marks, and nothing in the release helps but what should."""

import ast
import re

import nbformat
import pytest

pytest.importorskip("nbgrader")

from grading.__main__ import main  # noqa: E402
from grading.authoring import week_notebook  # noqa: E402
from grading.authoring.cells import answer_of, is_answer, is_check, nbgrader_of  # noqa: E402
from grading.paths import EXERCISES, ROOT  # noqa: E402
from grading.week import course  # noqa: E402
from machinery import parts  # noqa: E402


@pytest.fixture(scope="module")
def cells():
    return nbformat.read(week_notebook.TARGET, as_version=4).cells


def marks_in_the_tests():
    """{part: points} as the decorators of the test files say, read as text."""
    found = dict.fromkeys(parts.PARTS, 0)
    for path in (ROOT / "tests").glob("test_*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            for mark in getattr(node, "decorator_list", ()) if isinstance(node, ast.FunctionDef) else ():
                if ast.unparse(mark).startswith("pytest.mark.points("):
                    found[parts.part_of_test(node.name)] += mark.args[0].value
    return found


def test_the_notebook_is_what_its_source_gives():
    assert main(["week-notebook", "--check"]) == 0


def test_the_points_of_the_cells_are_the_marks_of_the_tests(cells):
    points = {nbgrader_of(cell)["grade_id"]: nbgrader_of(cell)["points"] for cell in filter(is_check, cells)}
    marks = marks_in_the_tests()
    assert {part: points[part] for part in parts.CORE} == {part: marks[part] for part in parts.CORE}
    assert sum(points[part] for part in parts.CORE) == 100
    bonus = {part: of for part, of in points.items() if part not in parts.CORE}
    assert bonus == dict.fromkeys((*parts.DEPTH, "memory"), 0)


def test_another_mark_in_the_tests_makes_the_notebook_stale(monkeypatch):
    changed = {**week_notebook.points_by_part(), "rope": 21}
    monkeypatch.setattr(week_notebook, "points_by_part", lambda: changed)
    assert main(["week-notebook", "--check"]) == 1


def test_every_question_stands_above_its_answer_and_says_its_points(cells):
    for question, answer in zip(cells, cells[1:], strict=False):
        if answer_of(question):
            assert nbgrader_of(answer)["grade_id"] == answer_of(question)
            assert f"({nbgrader_of(answer)['points']} points)" in question.source
    answers = [cell for cell in cells if is_answer(cell)]
    assert len(answers) == sum(bool(answer_of(cell)) for cell in cells) >= 6
    assert f"WRITTEN_POINTS {sum(nbgrader_of(cell)['points'] for cell in answers)}" == "WRITTEN_POINTS 30"


def test_every_rubric_gives_the_points_of_its_answer(cells):
    for cell in filter(is_answer, cells):
        given = [int(points) for points in re.findall(r"^- (\d) points?: ", cell.source, flags=re.MULTILINE)]
        assert sum(given) == nbgrader_of(cell)["points"], nbgrader_of(cell)["grade_id"]


def test_every_link_and_command_of_the_notebook_is_there(cells):
    text = "\n".join(cell.source for cell in cells)
    for link in re.findall(r"\]\(([\w./]+)\)", text):
        assert (ROOT / link).exists(), link
    for file in re.findall(r"pytest (tests/\w+\.py)", text):
        assert (ROOT / file).is_file(), file


def test_an_instructors_settings_survive_the_second_making(tmp_path):
    course.set_up(tmp_path)
    config = tmp_path / course.CONFIG
    moved = config.read_text("utf-8").replace(str(ROOT), "/moved/away")
    config.write_text(f"{moved}c.LatePolicy.grace_minutes = 7\n", "utf-8")
    course.set_up(tmp_path)
    text = config.read_text("utf-8")
    assert text.endswith("c.LatePolicy.grace_minutes = 7\n") and "/moved/away" not in text and str(ROOT) in text


def test_a_course_can_be_made_anywhere_and_again(tmp_path):
    folder = tmp_path / "a course"
    course.set_up(folder)
    secret = (folder / course.SECRET).read_bytes()
    (folder / "submitted").mkdir()
    course.set_up(folder)
    assert (folder / course.SECRET).read_bytes() == secret and len(secret) > 32
    assert (folder / course.SECRET).stat().st_mode & 0o777 == 0o600
    assert f"REPOSITORY = Path({str(ROOT)!r})" in (folder / course.CONFIG).read_text(encoding="utf-8")
    released = {path.name: path.read_text(encoding="utf-8") for path in (folder / "source").rglob("*.py")}
    assert released == {path.name: path.read_text(encoding="utf-8") for path in EXERCISES.glob("*.py")}


def test_a_course_that_cannot_be_made_is_one_sentence(tmp_path, capsys):
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert course.run(type("Arguments", (), {"folder": tmp_path / "file", "exchange": None})) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "can't be made" in said
