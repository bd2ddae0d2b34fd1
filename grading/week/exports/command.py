"""`python -m grading export`: every export of one assignment into one folder."""

import logging
import sys
from pathlib import Path

from grading.week.collect import ASSIGNMENT

HELP = "export the grades: CSV in nbgrader's columns, Canvas, Moodle, Gradescope"


def add_arguments(parser):
    parser.add_argument("--course", type=Path, required=True, metavar="COURSE", help="the nbgrader course's folder")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="where to write (COURSE/exports)")


def run(args):
    """Export; 1 with a sentence where a grade is missing by our fault."""
    from grading.week.course_folder import Course, CourseError
    from grading.week.databases import DatabaseError
    from grading.week.exports.rows import ExportError

    try:
        return export(Course(args.course), args.out or args.course / "exports")
    except (CourseError, DatabaseError, ExportError) as error:
        print(f"Nothing is exported: {error}", file=sys.stderr)
        return 1


def export(course, out):
    """Write all exports of a course into the folder `out`."""
    from nbgrader.apps import ExportApp

    from grading.week.databases import open_gradebook
    from grading.week.exports import plugins
    from grading.week.exports.rows import ExportError

    kinds = (plugins.GradesExporter, plugins.CanvasExporter, plugins.MoodleExporter, plugins.GradescopeExporter)
    app = ExportApp(config=course.config, log_level=logging.WARNING)
    app.coursedir = course.directory
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ExportError(f"{out} can't be made ({error.strerror}): name another place with --out.") from None
    with open_gradebook(course.db_url, course.course_id) as gradebook:
        for kind in kinds:
            exporter = kind(parent=app, to=str(out / kind.default), assignment=[ASSIGNMENT])
            sentences = exporter.write(gradebook)
    print(*sentences, sep="\n", end="\n" if sentences else "")
    print(f"Exported to {out}: {', '.join(kind.default for kind in kinds)}")
    return 0
