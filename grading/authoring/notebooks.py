"""`python -m grading notebooks`: write notebooks/*.ipynb from notebooks/source/*.py; --check only compares.

The source is a plain Python file in jupytext's percent form: a line `# %%` begins a code cell,
`# %% [markdown]` a text cell. It is what a maintainer reads, edits and reviews. The notebook beside
it holds no outputs and is never edited by hand.
"""

import sys

import jupytext
import nbformat

from grading.paths import ROOT

HELP = "write notebooks/*.ipynb from notebooks/source/*.py"
FOLDER = ROOT / "notebooks"
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def sources():
    """The source files, in the order of the week."""
    return sorted((FOLDER / "source").glob("[0-9][0-9]_*.py"))


def target(source):
    """The notebook of a source file."""
    return FOLDER / f"{source.stem}.ipynb"


def notebook_text(source):
    """The notebook of a source file as text: the same source, the same bytes."""
    notebook = jupytext.read(source, fmt="py:percent")
    notebook.metadata = nbformat.from_dict({"kernelspec": KERNEL, "language_info": {"name": "python"}})
    for number, cell in enumerate(notebook.cells, start=1):
        cell.id = f"cell-{number:02d}"
    nbformat.validate(notebook)
    return nbformat.writes(notebook) + "\n"


def stale():
    """Paths of notebooks that are not what their source gives, and of notebooks without a source."""
    wanted = {target(source): notebook_text(source) for source in sources()}
    found = {path: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.ipynb")}
    return sorted(path for path in {*wanted, *found} if wanted.get(path) != found.get(path))


def add_arguments(parser):
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a notebook is not up to date")


def run(args):
    """Write, or compare; the exit code."""
    if args.check:
        for path in stale():
            print(f"{path.relative_to(ROOT)} is not what its source gives: run  make notebooks", file=sys.stderr)
        return 1 if stale() else 0
    for source in sources():
        target(source).write_text(notebook_text(source), encoding="utf-8")
    for path in stale():  # what is left has no source
        print(f"{path.relative_to(ROOT)} has no source in notebooks/source: remove it, or write one.", file=sys.stderr)
    return 1 if stale() else 0
