"""`python -m grading report`: the class report, and the counts that the page of the bank reads."""

import json
import sys
from pathlib import Path

from grading.week.collect import ASSIGNMENT

HELP = "one page about the class: marks, mistakes, tests, late and similar submissions"


def add_arguments(parser):
    parser.add_argument("--course", type=Path, required=True, metavar="COURSE", help="the nbgrader course's folder")
    parser.add_argument("--out", type=Path, metavar="FILE", help="the page to write (COURSE/report.html)")


def run(args):
    """Write the report; 1 with a sentence where that is impossible."""
    from grading.week.course_folder import Course, CourseError
    from grading.week.databases import DatabaseError
    from grading.week.exports.rows import ExportError
    from grading.week.times import TimeError

    try:
        return report(Course(args.course), args.out or args.course / "report.html")
    except (CourseError, DatabaseError, ExportError, TimeError) as error:
        print(f"There is no report: {error}", file=sys.stderr)
    except OSError as error:
        print(f"There is no report: {error.filename}: {error.strerror}.", file=sys.stderr)
    return 1


def report(course, out):
    """Write the page and the counts beside it. Penalties are worked out again, as for an export."""
    from grading.grader.results import write
    from grading.week.databases import open_gradebook
    from grading.week.report.facts import counts, gather
    from grading.week.report.page import page
    from grading.week.times import course_zone

    counts_file = out.with_suffix(".counts.json")
    with open_gradebook(course.db_url, course.course_id) as gradebook:
        found = gather(course, gradebook, ASSIGNMENT)
    text = page(found, course, course_zone(course.config), counts_file)
    out.parent.mkdir(parents=True, exist_ok=True)
    write(counts_file, json.dumps(counts(found.results), indent=1))
    write(out, text)
    graded, failed = len(found.results), len(found.errors)
    print(f"{len(found.names)} students, {graded} with graded code, {failed} grader errors: {out}")
    return 0
