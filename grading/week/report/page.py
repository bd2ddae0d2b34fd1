"""The class report's page: page.html, filled with what facts.py has gathered."""

from datetime import UTC, datetime
from pathlib import Path

import jinja2

from grading.week.report import facts, pictures, similar
from grading.week.times import show_time

TEMPLATE = Path(__file__).with_suffix(".html")
MOST_PAIRS = 50  # similar pairs that the page shows


def page(found, course, zone, counts_file):
    """The whole page as HTML. Everything that comes from outside is escaped."""
    held, results = found.standing, found.results
    parts, made = facts.by_part(results), facts.mistakes(results)
    marked = [max(0.0, row.raw - row.penalty) for row in found.submitted]
    texts = similar.submissions(course, held.assignment, found.names)
    pairs = similar.pairs(texts)
    nobody, everybody = facts.extremes(results)
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, undefined=jinja2.StrictUndefined)
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        assignment=held.assignment, names=found.names, submitted=found.submitted, errors=found.errors,
        graded=len(results), figures=facts.figures(found.submitted, marked), marked=marked, of=held.of,
        to_do=list(facts.to_do(found, nobody, pairs)), most=held.bonus.most,
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
    return show_time(moment if moment.tzinfo else moment.replace(tzinfo=UTC), zone)


def _span(length):
    """A span of time in its largest units."""
    minutes, days = int(length.total_seconds()) // 60, length.days
    return f"{days} d {minutes // 60 % 24} h" if days else f"{minutes // 60} h {minutes % 60} min"
