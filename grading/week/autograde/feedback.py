"""The feedback page: what each part earned and why, the written answers with their comments, and nothing else.

nbgrader's own page shows every cell with every output and passes HTML through. This one takes three kinds of cells
and lets only plain markup out. It needs no network: formulas are MathML.
"""

from pathlib import Path

import bleach
from jinja2 import pass_context
from nbconvert.exporters import HTMLExporter
from nbconvert.filters.markdown_mistune import MarkdownWithMath
from nbgrader.preprocessors import GetGrades

from grading.authoring.cells import answer_of, is_answer, is_check
from grading.authoring.mathml import MathMLRenderer
from grading.week.autograde.preprocessors import SUMMARY

TEMPLATES = Path(__file__).parent / "templates"
TEXT = set(
    "a b blockquote br code dd del div dl dt em h1 h2 h3 h4 h5 h6 hr img li ol p pre span strong sub sup "
    "table tbody td th thead tr ul".split()
)
FORMULA = set(
    "math mfrac mi mn mo mover mpadded mphantom mroot mrow mspace msqrt mstyle msub msubsup msup mtable mtd mtext mtr "
    "munder munderover".split()
)
ATTRIBUTES = {"img": ["src", "alt"], "math": ["display"], "mo": ["stretchy"], "div": ["class"], "span": ["class"]}


class FeedbackGrades(GetGrades):
    """Brings the grades into the cells that a student is shown, and drops all other cells."""

    def preprocess(self, nb, resources):
        nb.cells = [cell for cell in nb.cells if _kind(cell)]
        for cell in nb.cells:
            cell.metadata["shown_as"] = _kind(cell)
        return super().preprocess(nb, resources)

    def _get_score(self, cell, resources):
        super()._get_score(cell, resources)
        grade = self.gradebook.find_grade(
            cell.metadata.nbgrader["grade_id"], self.notebook_id, self.assignment_id, self.student_id
        )
        cell.metadata["unread"] = grade.needs_manual_grade and grade.manual_score is None


def _kind(cell):
    """What a cell is shown as; empty for one that is not shown."""
    if SUMMARY in cell.metadata.get("tags", ()):
        return "summary"
    if is_check(cell):
        return "part"
    if is_answer(cell):
        return "answer"
    return "question" if answer_of(cell) else ""


class FeedbackPage(HTMLExporter):
    """The exporter of nbgrader generate_feedback."""

    @pass_context
    def markdown2html(self, context, source, attachments=None):
        """The filter of the template: text and formulas, pictures that were attached, and no more."""
        renderer = MathMLRenderer(escape=False, exclude_anchor_links=True, attachments=attachments or {})
        shown = MarkdownWithMath(renderer=renderer).render(source)
        return bleach.clean(shown, tags=TEXT | FORMULA, attributes=ATTRIBUTES, protocols={"data"})
