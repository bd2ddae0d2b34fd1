"""One student as Gradescope's results.json: the tests, the written answers, the total that counts."""

from grading.grader.inside.wire import clean
from grading.grader.results import gradescope


def results_json(row, result):
    """What Gradescope reads of one student; `result` is the two-zone grader's, None where it graded nothing."""
    shown = gradescope(result) if result else {"output": "no code was graded", "output_format": "text", "tests": []}
    total = f"in all {row.core:g} points of the week's own and {row.bonus:g} of bonus"
    late = f"late submission: {row.penalty:g} points taken" if row.penalty else ""
    shown["output"] = "\n".join(filter(None, (shown["output"], total, late)))
    return {**shown, "score": row.mark, "tests": [*shown["tests"], *map(_written, row.written)]}


def _written(answer):
    cell, score, of = answer
    return {"name": f"written: {clean(cell)}", "score": score, "max_score": of, "output_format": "text"}
