"""`python -m grading report`: the class report, and the counts that the page of the bank reads."""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path

from grading.week.collect import ASSIGNMENT

HELP = "one page about the class: marks, mistakes, tests, late and similar submissions"
TEMPLATE = Path(__file__).parent / "page.html"
MOST_PAIRS = 50  # similar pairs that the page shows


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


def page(found, course, zone, counts_file):
    """The whole page as HTML. Everything that comes from outside is escaped."""
    import jinja2

    from grading.week.report import facts, pictures, similar

    held, results = found.standing, found.results
    parts, made = facts.by_part(results), facts.mistakes(results)
    marked = [max(0.0, row.raw - row.penalty) for row in found.submitted]
    texts = similar.submissions(course, held.assignment, found.names)
    pairs = similar.pairs(texts)
    nobody, everybody = facts.extremes(results)
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, undefined=jinja2.StrictUndefined)
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        assignment=held.assignment, names=found.names, submitted=found.submitted, errors=found.errors,
        graded=len(results), figures=facts.figures(marked), marked=marked,
        waiting=[row for row in held.rows if row.waiting],
        absent=[row.student for row in held.rows if not row.submitted and not row.why],
        totals=pictures.totals(marked, held.of) if marked else "",
        parts=parts, parts_picture=pictures.parts(parts) if parts else "",
        mistakes=made, mistakes_picture=pictures.mistakes(made) if made else "", counts_file=counts_file,
        unnamed=facts.unnamed(results), states=facts.states(results), nobody=nobody, everybody=everybody,
        late=[(row, _shown(row.time, zone), _span(row.time - held.due)) for row in facts.late(held)],
        due=_shown(held.due, zone) if held.due else "", intake=found.intake, ungraded=facts.ungraded(held),
        similar=pairs[:MOST_PAIRS], more_similar=len(pairs[MOST_PAIRS:]), compared=len(texts),
        common=similar.COMMON, share=similar.SHARE, passage=similar.PASSAGE, least=similar.LEAST,
        runs=[(run, _shown(datetime.fromtimestamp(run.begin, UTC), zone)) for run in facts.runs(found.finished)],
    )  # fmt: skip


def _shown(moment, zone):
    """A time in the course's zone; the gradebook's are UTC without saying so."""
    from grading.week.times import show_time

    return show_time(moment if moment.tzinfo else moment.replace(tzinfo=UTC), zone)


def _span(length):
    """A span of time in its largest units."""
    minutes, days = int(length.total_seconds()) // 60, length.days
    return f"{days} d {minutes // 60 % 24} h" if days else f"{minutes // 60} h {minutes % 60} min"
