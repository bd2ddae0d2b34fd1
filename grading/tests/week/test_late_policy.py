"""The late policy: where it begins, what a day is, where it ends, and that it never counts twice."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

pytest.importorskip("nbgrader")

from courses import copy_of
from nbformat.v4 import new_notebook
from nbgrader.preprocessors import AssignLatePenalties
from traitlets import TraitError
from traitlets.config import Config

from grading.week.databases import open_gradebook
from grading.week.late_policy import LatePolicy, days_late, renew

BERLIN = ZoneInfo("Europe/Berlin")
SECOND, MINUTE, HOUR, DAY = (timedelta(seconds=n) for n in (1, 60, 3600, 86400))
DUE = datetime(2026, 1, 10, 23, 59, tzinfo=BERLIN)
GRACE = 15 * MINUTE


@pytest.mark.parametrize(
    ("after", "days"),
    [
        (-DAY, 0),
        (0 * SECOND, 0),
        (SECOND, 0),
        (GRACE, 0),
        (GRACE + SECOND, 1),
        (GRACE + DAY, 1),
        (GRACE + DAY + SECOND, 2),
        (GRACE + 30 * DAY, 30),
    ],
)
def test_a_day_begins_one_second_after_the_grace(after, days):
    assert days_late(DUE.astimezone(UTC), (DUE + after).astimezone(UTC), GRACE, BERLIN) == days


def test_without_grace_the_deadline_itself_is_on_time():
    assert days_late(DUE, DUE, 0 * SECOND, BERLIN) == 0
    assert days_late(DUE, DUE + SECOND, 0 * SECOND, BERLIN) == 1


@pytest.mark.parametrize(
    ("due", "hours"),
    [
        (datetime(2026, 10, 24, 23, 59, tzinfo=BERLIN), 25),  # clocks go back in this night
        (datetime(2026, 3, 28, 23, 59, tzinfo=BERLIN), 23),  # and forward in this one
        (datetime(2026, 3, 28, 2, 30, tzinfo=BERLIN), 24),  # 2:30 of the next day does not exist: 3:30 does
    ],
)
def test_a_day_ends_at_the_same_time_of_the_clock_when_the_clock_is_changed(due, hours):
    due = due.astimezone(UTC)
    assert days_late(due, due + hours * HOUR, 0 * SECOND, BERLIN) == 1
    assert days_late(due, due + hours * HOUR + SECOND, 0 * SECOND, BERLIN) == 2


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"grace_minutes": -1}, "LatePolicy.grace_minutes is -1: write 0 or more"),
        ({"percent_a_day": 101.0}, "LatePolicy.percent_a_day is 101: write a number from 0 to 100"),
        ({"cap_percent": -0.5}, "LatePolicy.cap_percent is -0.5: write a number from 0 to 100"),
    ],
)
def test_settings_that_make_no_sense_are_one_sentence(settings, words):
    with pytest.raises(TraitError, match=words):
        LatePolicy(**settings)


def test_the_cap_is_the_most_that_is_taken():
    policy = LatePolicy(percent_a_day=10.0, cap_percent=25.0)
    assert [policy.percent(days) for days in (0, 1, 2, 3, 100)] == [0, 10, 20, 25, 25]


CONFIG = Config(
    {
        "AssignLatePenalties": {"plugin_class": "grading.week.late_policy.LatePolicy"},
        "LatePolicy": {"grace_minutes": 15, "percent_a_day": 10.0, "cap_percent": 50.0},
        "NbGraderAPI": {"timezone": "Europe/Berlin"},
    }
)


@pytest.fixture(scope="module")
def late_course(small_course, tmp_path_factory):
    """A gradebook with one assignment of 10 points, in which ada is a day and a half late and grace is on time."""
    course = copy_of(small_course, tmp_path_factory.mktemp("late") / "course")
    url = f"sqlite:///{course}/gradebook.db"
    with open_gradebook(url, "course") as gradebook:
        gradebook.add_assignment("week06", duedate=DUE.astimezone(UTC).replace(tzinfo=None))
        gradebook.add_notebook("week06", "week06")
        gradebook.add_grade_cell("part", "week06", "week06", max_score=10, cell_type="code")
        for student, after in (("ada", 1.5 * DAY), ("grace", 0 * DAY)):
            when = (DUE + after).astimezone(UTC).replace(tzinfo=None)
            gradebook.add_submission("week06", student, timestamp=when)
    return url


def marks(url, student, score=None):
    """Set a score by hand if one is given; (score, penalty) of the submission."""
    with open_gradebook(url, "course") as gradebook:
        grade = gradebook.find_grade("part", "week06", "week06", student)
        if score is not None:
            grade.manual_score = score
            gradebook.db.commit()
        submission = gradebook.find_submission("week06", student)
        return submission.score, submission.late_submission_penalty


def preprocess(url, student):
    """What `nbgrader autograde` does at its end."""
    resources = {"nbgrader": {"notebook": "week06", "assignment": "week06", "student": student, "db_url": url}}
    AssignLatePenalties(config=CONFIG).preprocess(Config({"cells": []}), resources)


def test_nbgrader_takes_the_penalty_from_the_score_of_now_however_often_it_runs(late_course):
    marks(late_course, "ada", 8.0)
    marks(late_course, "grace", 8.0)
    for _ in range(3):
        preprocess(late_course, "ada")
        preprocess(late_course, "grace")
        assert marks(late_course, "ada") == (8.0, pytest.approx(1.6))
        assert marks(late_course, "grace")[1] in (None, 0)
    marks(late_course, "ada", 5.0)
    preprocess(late_course, "ada")
    assert marks(late_course, "ada") == (5.0, pytest.approx(1.0))


def test_after_marks_by_hand_the_penalties_are_renewed_for_all(late_course):
    marks(late_course, "ada", 4.0)
    with open_gradebook(late_course, "course") as gradebook:
        assert renew(gradebook, CONFIG, "week06") == 1
        assert renew(gradebook, CONFIG, "week06") == 0
    assert marks(late_course, "ada") == (4.0, pytest.approx(0.8))


def test_the_courses_feedback_shows_the_penalty_of_the_score_of_now(late_course, tmp_path, monkeypatch):
    from nbgrader.apps import api, autogradeapp

    from grading.week.autograde.wiring import configure

    for module in (api, autogradeapp):
        monkeypatch.setattr(module, "Autograde", module.Autograde)  # the wiring replaces it
    config = Config()
    configure(config, tmp_path)
    config.merge(CONFIG)
    marks(late_course, "ada", 2.0)
    resources = {"nbgrader": {"notebook": "week06", "assignment": "week06", "student": "ada", "db_url": late_course}}
    notebook = new_notebook()
    for step in config.GenerateFeedback.preprocessors:
        notebook, resources = step(config=config).preprocess(notebook, resources)
    assert resources["nbgrader"]["late_penalty"] == pytest.approx(0.4)
    assert resources["nbgrader"]["score"] == pytest.approx(1.6)


def test_an_extension_moves_the_deadline(late_course):
    marks(late_course, "ada", 8.0)
    with open_gradebook(late_course, "course") as gradebook:
        gradebook.grant_extension("week06", "ada", days=1)
        renew(gradebook, CONFIG, "week06")
    assert marks(late_course, "ada") == (8.0, pytest.approx(0.8))
    with open_gradebook(late_course, "course") as gradebook:
        gradebook.grant_extension("week06", "ada", days=2)
        renew(gradebook, CONFIG, "week06")
        gradebook.grant_extension("week06", "ada")
    assert marks(late_course, "ada")[1] in (None, 0)


def test_percent_of_nothing_is_nothing(late_course):
    marks(late_course, "ada", 0.0)
    preprocess(late_course, "ada")
    assert marks(late_course, "ada") == (0.0, 0.0)
