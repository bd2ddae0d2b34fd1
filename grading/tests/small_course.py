"""A small nbgrader course for tests: a gradebook with marks, and results of the two-zone grader beside it."""

from datetime import datetime
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from grading.grader.exam import _result, failed_result
from grading.grader.results import ResultsFolder
from grading.grader.student_files import Intake
from grading.paths import ROOT
from grading.week.databases import open_gradebook

CONFIG = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
c = get_config()
c.AssignLatePenalties.plugin_class = "grading.week.late_policy.LatePolicy"
c.LatePolicy.percent_a_day = 10.0
"""
DUE = "2026-11-27 22:59:00"
TESTS = {  # name: (part, points)
    "test_rmsnorm_does_not_center": ("rmsnorm", 3),
    "test_rope_preserves_norm": ("rope", 2),
    "test_attention_repeat_kv_keeps_neighbours_together": ("attention", 4),
    "test_cache_gives_the_same": ("cache", 2),
}


def result(student, states=None, mistakes=None):
    """A result of the grader: every test passed, unless `states` says otherwise; `mistakes` by test."""
    private, public = [], {}
    for name, (part, points) in TESTS.items():
        state = (states or {}).get(name, "passed")
        private.append(
            {"id": name, "name": name, "part": part, "points": points, "outcome": state, "exercise": "RMSNorm",
             "message": f"{name} is {state}", "out_of_the_grader": True, "asked": ("RMSNorm",)}
        )  # fmt: skip
        if state == "failed":
            public[name] = {"outcome": state, "message": "", "mistake": (mistakes or {}).get(name)}
    graded = _result(Intake(student, {"rope": "x = 1\n"}), private, public)
    return {**graded, "key": "key", "sandboxed": True}


def broken(student, sentence="the process that held the tests has died"):
    """What the grader writes of a submission that it could not grade."""
    return {**failed_result(Intake(student), sentence), "key": "key", "sandboxed": True}


@cache
def _new_gradebook():
    """A gradebook's file with the assignment in it. nbgrader takes seconds to make one, so it is made once."""
    with TemporaryDirectory() as room:
        file = Path(room) / "gradebook.db"
        with open_gradebook(f"sqlite:///{file}") as book:
            book.add_assignment("week06", duedate=DUE)
            book.add_notebook("week06", "week06")
            book.add_grade_cell("parts", "week06", "week06", max_score=11, cell_type="code")
            book.add_grade_cell("interview", "week06", "week06", max_score=4, cell_type="markdown")
            book.add_solution_cell("interview", "week06", "week06")
        return file.read_bytes()


class SmallCourse:
    """A course folder of one assignment: 11 points by tests in one cell, 4 by hand in another."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "nbgrader_config.py").write_text(CONFIG, encoding="utf-8")
        self.url = f"sqlite:///{folder / 'gradebook.db'}"
        (folder / "gradebook.db").write_bytes(_new_gradebook())

    def gradebook(self):
        return open_gradebook(self.url)

    def add(self, student, auto=None, manual=None, first="", last="", lms="", time=DUE, graded=None, bonus=None):
        """A student; with `auto` one who handed in. Where `manual` is None, a person has still to grade."""
        with self.gradebook() as book:
            book.add_student(student, first_name=first, last_name=last, email=f"{student}@uni.example", lms_user_id=lms)
            if auto is not None:
                book.add_submission("week06", student, timestamp=datetime.fromisoformat(time))
                parts = book.find_grade("parts", "week06", "week06", student)
                parts.auto_score, parts.needs_manual_grade, parts.extra_credit = auto, False, bonus
                answer = book.find_grade("interview", "week06", "week06", student)
                answer.manual_score, answer.needs_manual_grade = manual, manual is None
                book.db.commit()
        if auto is not None or graded:
            ResultsFolder(self.folder / "results" / "week06").put(student, graded or result(student))

    def hand_in(self, student, files):
        """Files of a submission, as `collect` lays them down: {name: text}."""
        place = self.folder / "submitted" / student / "week06" / "exercises_en"
        place.mkdir(parents=True)
        for name, text in files.items():
            (place / name).write_text(text, encoding="utf-8")
