"""`python -m grading week-notebook`: write week06.ipynb from week/course_template/week06.py; --check only compares.

The source is a plain Python file in jupytext's percent form. Three keys say what nbgrader makes of a cell:

    # %% part="rope"                           the self-check of a part; its points are the marks of its tests
    # %% [markdown] question="gradient"        a question, locked
    # %% [markdown] answer="gradient" points=5   its answer, graded by hand; the text is the rubric, for graders only

A question's heading gets the points of its answer; CORE_POINTS, WRITTEN_POINTS and ALL_POINTS become their numbers.
"""

import sys

import jupytext
import nbformat

from grading.authoring.cells import question_id
from grading.authoring.notebooks import KERNEL
from grading.authoring.points import points_by_part
from grading.paths import ROOT
from machinery import parts

HELP = "write the graded notebook from week/course_template/week06.py"
COURSE = ROOT / "grading" / "week" / "course_template"
SOURCE = COURSE / "week06.py"
TARGET = COURSE / "source" / "week06" / "week06.ipynb"
SCHEMA = 3  # of nbgrader's metadata


def notebook_text():
    """The notebook as text: the same source, the same bytes."""
    notebook = jupytext.read(SOURCE, fmt="py:percent")
    notebook.metadata = nbformat.from_dict({"kernelspec": KERNEL, "language_info": {"name": "python"}})
    written = {cell.metadata["answer"]: cell.metadata["points"] for cell in notebook.cells if "answer" in cell.metadata}
    for number, cell in enumerate(notebook.cells, start=1):
        cell.id = f"cell-{number:02d}"
        cell.source = _with_points(cell.source, written, cell.metadata.get("question"))
        cell.metadata = nbformat.from_dict(_metadata(dict(cell.metadata), cell.cell_type))
    nbformat.validate(notebook)
    return nbformat.writes(notebook) + "\n"


def _with_points(text, written, question):
    """A cell's text with the points that it speaks of."""
    core = sum(points_by_part()[part] for part in parts.CORE)
    added = sum(written.values())
    for word, number in (("CORE", core), ("WRITTEN", added), ("ALL", core + added)):
        text = text.replace(f"{word}_POINTS", str(number))
    if question is None:
        return text
    heading, _, rest = text.partition("\n")
    return f"{heading} ({written[question]} points)\n{rest}"


def _metadata(keys, cell_type):
    """nbgrader's metadata of a cell with these keys in the source."""
    if "part" in keys:
        part = keys["part"]
        points = points_by_part()[part] if part in parts.CORE else 0  # what a depth part gives is extra credit
        return _nbgrader(part, cell_type, grade=True, points=points, locked=True)
    if "answer" in keys:
        return _nbgrader(keys["answer"], cell_type, grade=True, points=keys["points"], solution=True)
    if "question" in keys:
        return _nbgrader(question_id(keys["question"]), cell_type, locked=True)
    return {}


def _nbgrader(grade_id, cell_type, **settings):
    flags = {"grade": False, "solution": False, "locked": False, "task": False, **settings}
    return {"nbgrader": {"grade_id": grade_id, "schema_version": SCHEMA, "cell_type": cell_type, **flags}}


def add_arguments(parser):
    parser.add_argument("--check", action="store_true", help="write nothing; fail where the notebook is not up to date")


def run(args):
    """Write, or compare; the exit code."""
    if args.check:
        if TARGET.is_file() and TARGET.read_text(encoding="utf-8") == notebook_text():
            return 0
        print(f"{TARGET.relative_to(ROOT)} is not what its source gives: run  make notebooks", file=sys.stderr)
        return 1
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(notebook_text(), encoding="utf-8", newline="\n")
    return 0
