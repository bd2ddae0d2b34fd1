"""Stand where nbgrader executes the notebook: no cell is run, the two-zone grader's results are put in.

What they need comes in resources["week"], a Graded, from the converter.
"""

import nbformat.v4
from nbgrader.api import Gradebook
from nbgrader.preprocessors import NbGraderPreprocessor, SaveAutoGrades

from grading.authoring.cells import is_answer, is_check, nbgrader_of
from grading.week.autograde.outputs import earned, part_outputs, summary
from machinery import parts

STAMP = "week"  # in the notebook's metadata: what this grading was made from, and the bonus that it gave
RUBRIC, SUMMARY = "week-rubric", "week-summary"  # tags of the cells that are added


class GradeFromResults(NbGraderPreprocessor):
    """Put a result into the cells of its parts, so that nbgrader reads the points there."""

    def preprocess(self, nb, resources):
        graded = resources["week"]
        tests = graded.result["tests"]
        cells = []
        for cell in nb.cells:
            grade_id = nbgrader_of(cell).get("grade_id")
            if is_answer(cell) and grade_id in graded.rubrics:
                text = f"**For the grader**, no student sees this:\n\n{graded.rubrics[grade_id]}"
                cells.append(_markdown(text, RUBRIC, f"rubric-{grade_id}"))
            cells.append(cell)
            if is_check(cell):
                cell.outputs = part_outputs(tests, grade_id, grade_id in parts.CORE)
                cell.execution_count = 1
        cells.insert(1, _markdown(summary(graded.result, graded.notes, bonus(tests)), SUMMARY, SUMMARY))
        nb.cells = cells
        nb.metadata[STAMP] = {"stamp": graded.stamp, "bonus": bonus(tests)}
        return nb, resources


class SaveGrades(SaveAutoGrades):
    """nbgrader's own, but a mark by hand on work that has not changed since needs no second look, and an answer that
    may have been written waits for a person, where nbgrader takes it for untouched.
    """

    def _add_score(self, cell, resources):
        names = resources["nbgrader"]
        grade_id = nbgrader_of(cell)["grade_id"]
        grade = self.gradebook.find_grade(grade_id, names["notebook"], names["assignment"], names["student"])
        settled = grade.manual_score is not None and not grade.needs_manual_grade
        super()._add_score(cell, resources)
        if grade_id in resources["week"].unsure and grade.auto_score == 0:
            grade.auto_score, grade.needs_manual_grade = None, True
        if settled and resources["week"].unchanged:
            grade.needs_manual_grade = False
        self.gradebook.db.commit()

    def _add_comment(self, cell, resources):
        super()._add_comment(cell, resources)
        names, grade_id = resources["nbgrader"], nbgrader_of(cell)["grade_id"]
        if grade_id in resources["week"].unsure:  # nbgrader says "No response."
            comment = self.gradebook.find_comment(grade_id, names["notebook"], names["assignment"], names["student"])
            comment.auto_comment = None
            self.gradebook.db.commit()


class SaveBonus(NbGraderPreprocessor):
    """Write what the depth parts earned as extra credit; what a grader has changed there by hand stays."""

    def preprocess(self, nb, resources):
        names = resources["nbgrader"]
        given, before = nb.metadata[STAMP]["bonus"], resources["week"].bonus_before
        with Gradebook(names["db_url"]) as gradebook:
            for cell in filter(is_check, nb.cells):
                part = nbgrader_of(cell)["grade_id"]
                if part not in given:
                    continue
                grade = gradebook.find_grade(part, names["notebook"], names["assignment"], names["student"])
                if part in before and grade.extra_credit not in (None, before[part]):
                    self.log.info("The extra credit for %s was set by hand and stays", part)
                    continue
                grade.extra_credit = float(given[part])
            gradebook.db.commit()
        return nb, resources


def bonus(tests):
    """{part that is no core part: points that it earned}."""
    return {part: earned(tests, part) for part in (*parts.DEPTH, *parts.ADVICE)}


def _markdown(text, tag, name):
    return nbformat.v4.new_markdown_cell(text, metadata={"tags": [tag]}, id=name)
