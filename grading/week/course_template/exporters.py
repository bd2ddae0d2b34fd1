"""Where nbgrader finds the exporters in the course's folder: `nbgrader export --exporter=exporters.CanvasExporter`."""

import sys
from pathlib import Path

COURSE = Path(__file__).resolve().parent
REPOSITORY = COURSE.parent.parent.parent  # `python -m grading course FOLDER` writes another path here

sys.path.insert(0, str(REPOSITORY))

from grading.week.exports.plugins import CanvasExporter, GradescopeExporter, MoodleExporter  # noqa: E402, F401
