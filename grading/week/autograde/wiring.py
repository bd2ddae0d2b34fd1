"""What the course's nbgrader_config.py sets, so that nbgrader's own commands and buttons grade the week."""

import contextlib
import warnings
from pathlib import Path

from sqlalchemy.exc import SAWarning

from grading.week import databases, times
from grading.week.autograde.converter import WeekAutograde
from grading.week.autograde.feedback import TEMPLATES, FeedbackGrades, FeedbackPage
from grading.week.autograde.generate import WeekGenerate
from grading.week.autograde.preprocessors import GradeFromResults, SaveBonus, SaveGrades
from grading.week.collect import ASSIGNMENT
from grading.week.course_folder import path_trouble
from nanolm.impl import CONTRACT

EXCHANGE = "exchange"


def configure(c, course):
    """Set all that nbgrader needs to know in its configuration `c`, for the course in the folder `course`."""
    from nbgrader.preprocessors import AssignLatePenalties, CheckCellMetadata, LimitOutput

    if trouble := path_trouble(course):
        raise SystemExit(trouble)
    # three for each new submission: what nbgrader means is done all the same
    warnings.filterwarnings("ignore", message="Object of type <Submitted", category=SAWarning)
    databases.install()
    times.install()
    _replace_converters()
    c.CourseDirectory.root = str(course)
    c.CourseDirectory.course_id = "nanolm"
    c.CourseDirectory.db_url = databases.url_of(course / "gradebook.db")
    c.Exchange.root = str(_exchange(Path(c.Exchange.get("root", course / EXCHANGE))))
    c.Autograde.autograde_preprocessors = [
        GradeFromResults, LimitOutput, SaveGrades, SaveBonus, AssignLatePenalties, CheckCellMetadata
    ]  # fmt: skip
    c.Autograde.exclude_overwriting = {ASSIGNMENT: [f"exercises_en/{module}.py" for module in CONTRACT]}
    c.GenerateFeedback.exporter_class = FeedbackPage
    c.GenerateFeedback.preprocessors = [AssignLatePenalties, FeedbackGrades]  # marks by hand may have come since
    # nbgrader sets its own template for every HTMLExporter: what is set for FeedbackPage itself comes first
    c.FeedbackPage.template_name = "feedback_page"
    c.FeedbackPage.extra_template_basedirs = [str(TEMPLATES)]
    c.ZipCollectApp.extractor_plugin = "grading.week.collect.plugins.WeekExtractor"
    c.ZipCollectApp.collector_plugin = "grading.week.collect.plugins.WeekCollector"
    c.ExchangeFactory.collect = "grading.week.collect.plugins.WeekExchangeCollect"
    c.ExchangeFactory.release_feedback = "grading.week.release_feedback.WeekReleaseFeedback"
    c.AssignLatePenalties.plugin_class = "grading.week.late_policy.LatePolicy"
    c.ExportApp.plugin_class = "grading.week.exports.plugins.GradesExporter"


def _replace_converters():
    """nbgrader has no setting for its converters: its commands and its server take them from these modules."""
    from nbgrader.apps import api, autogradeapp, generateassignmentapp

    api.Autograde = autogradeapp.Autograde = WeekAutograde
    api.GenerateAssignment = generateassignmentapp.GenerateAssignment = WeekGenerate


def _exchange(folder):
    """nbgrader's exchange, which must be there: everybody may write into it, and nobody may take away another's."""
    if not folder.is_dir():
        with contextlib.suppress(OSError):  # nbgrader says which folder it is, to those who need it
            folder.mkdir(parents=True)
            folder.chmod(0o1777)
    return folder
