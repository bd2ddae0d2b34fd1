"""`python -m grading.book`: run every notebook and write build/book/: a page and a slide show of each, an index.

--impl names the implementation that runs in them (the reference by default); further arguments are
beginnings of notebook names, to build only those.
"""

import argparse
import html
import os
import sys
import time

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbconvert import HTMLExporter, SlidesExporter
from traitlets.config import Config

from grading import notebooks
from grading.stubs import ROOT

BOOK = ROOT / "build" / "book"
# A page has no kernel to move a slider, so it takes the picture that a widget's output also holds.
SHOWN = ["text/html", "image/png", "text/markdown", "text/plain"]
NO_WIDGETS = Config({"NbConvertBase": {"display_data_priority": SHOWN}})


def execute(notebook, folder, implementation, seconds=600):
    """Run a notebook in `folder` with this implementation, in place; CellExecutionError where a cell fails."""
    environment = {**os.environ, "NANOLM_IMPL": implementation, "PYTHONPATH": str(ROOT)}
    client = NotebookClient(
        notebook,
        timeout=seconds,
        startup_timeout=seconds,  # a busy machine may take minutes to start a kernel, and
        iopub_timeout=60,  # seconds to hand over the last output
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute(env=environment)


def title(notebook):
    """The first heading."""
    return notebook.cells[0].source.splitlines()[0].lstrip("# ")


def make_slides(notebook):
    """Mark where slides begin: at every heading, and at every picture's code below it."""
    for cell in notebook.cells:
        begins = cell.cell_type == "markdown" and cell.source.startswith("#")
        below = cell.cell_type == "code"
        cell.metadata["slideshow"] = {"slide_type": "slide" if begins else "subslide" if below else "-"}


def write(path, implementation):
    """Run one notebook and write its page and its slides; its title."""
    notebook = nbformat.read(path, as_version=4)
    execute(notebook, path.parent, implementation)
    page, _ = HTMLExporter(config=NO_WIDGETS).from_notebook_node(notebook)
    make_slides(notebook)
    exporter = SlidesExporter(config=NO_WIDGETS, reveal_scroll=True, reveal_transition="none")
    slides, _ = exporter.from_notebook_node(notebook)
    (BOOK / f"{path.stem}.html").write_text(page, encoding="utf-8")
    (BOOK / f"{path.stem}.slides.html").write_text(slides, encoding="utf-8")
    return title(notebook)


def index(titles):
    """The table of contents as a page."""
    rows = "\n".join(
        f'<li><a href="{name}.html">{html.escape(text)}</a> (<a href="{name}.slides.html">slides</a>)</li>'
        for name, text in titles.items()
    )
    return (
        '<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>The modern block</title>\n'
        '<body style="font: 1.3rem/1.7 sans-serif; max-width: 45rem; margin: 3rem auto">\n'
        f"<h1>The modern block</h1>\n<ol>\n{rows}\n</ol>\n</body></html>\n"
    )


def main(argv=None):
    """Build the book; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m grading.book", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="beginnings of notebook names (default: all)")
    parser.add_argument("--impl", default="reference", help="the implementation to run (default: reference)")
    args = parser.parse_args(argv)
    BOOK.mkdir(parents=True, exist_ok=True)
    titles = {}
    for path in sorted(notebooks.FOLDER.glob("*.ipynb")):
        if args.names and not path.name.startswith(tuple(args.names)):
            continue
        start = time.perf_counter()
        try:
            titles[path.stem] = write(path, args.impl)
        except CellExecutionError as error:
            print(f"{path.name} stopped: {error}", file=sys.stderr)
            return 1
        print(f"{path.stem}: {time.perf_counter() - start:.0f} s")
    (BOOK / "index.html").write_text(index(titles), encoding="utf-8")
    print(f"open {(BOOK / 'index.html').relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
