"""`python -m grading book`: run every notebook and write build/book/: a page and a slide show of each, an index.

Neither needs a network: formulas become MathML, which browsers draw themselves, and reveal.js is copied beside.

--impl names the implementation that runs in them (the reference by default); further arguments are
beginnings of notebook names, to build only those.
"""

import html
import importlib.util
import os
import re
import shutil
import sys
import time
from pathlib import Path

import nbformat
from jinja2 import pass_context
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbconvert import HTMLExporter, SlidesExporter
from nbconvert.filters.markdown_mistune import MarkdownWithMath
from nbconvert.preprocessors import TagRemovePreprocessor
from traitlets.config import Config

from grading.authoring import notebooks
from grading.authoring.mathml import MathMLRenderer
from grading.paths import ROOT

HELP = "run every notebook and write build/book/: pages, slides, an index"
BOOK = ROOT / "build" / "book"
# A page has no kernel to move a slider, so it takes the picture that a widget's output also holds.
SHOWN = ["text/html", "image/png", "text/markdown", "text/plain"]
NO_WIDGETS = Config({"NbConvertBase": {"display_data_priority": SHOWN}})
TEMPLATES = ROOT / "grading" / "authoring" / "book_templates"
DRAWING = "drawing"  # a cell that shows a picture
REVEAL = "reveal"  # of the book: the folder with reveal.js


class _Offline:
    """What the page's and the slides' exporters share."""

    @pass_context
    def markdown2html(self, context, source):
        """The filter of the templates."""
        renderer = MathMLRenderer(escape=False, anchor_link_text=self.anchor_link_text, **self.lexer_options)
        return MarkdownWithMath(renderer=renderer).render(source)


class Page(_Offline, HTMLExporter):
    """A notebook with its outputs as one HTML file."""


class Slides(_Offline, SlidesExporter):
    """A notebook with its outputs as a slide show."""


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


def at_headings(cell):
    """A cell of text cut before each of its headings; any other cell as it is."""
    if cell.cell_type != "markdown":
        return [cell]
    texts = re.split(r"^(?=#+ )", cell.source, flags=re.MULTILINE)
    return [nbformat.v4.new_markdown_cell(text) for text in texts if text.strip()]


def make_slides(notebook):
    """Mark where slides begin: at a heading; the first picture below it stays with it, the rest goes further down.

    A picture is shown without the code that draws it, which would push it off the screen: the page has both.
    """
    notebook.cells = [part for cell in notebook.cells for part in at_headings(cell)]
    alone = True  # no picture on this slide yet
    for cell in notebook.cells:
        draws = any("image/png" in output.get("data", {}) for output in cell.get("outputs", ()))
        begins = cell.cell_type == "markdown" and cell.source.startswith("#")
        below = cell.cell_type == "code" and not (draws and alone)
        cell.metadata["slideshow"] = {"slide_type": "slide" if begins else "subslide" if below else "-"}
        if draws:
            cell.metadata["tags"] = [DRAWING]
        alone = begins or (alone and cell.cell_type == "markdown")


def pages(notebook):
    """The page and the slides of a notebook that has run, as HTML."""
    settings = {"extra_template_basedirs": [str(TEMPLATES)], "config": NO_WIDGETS}
    page, _ = Page(template_name="page", **settings).from_notebook_node(notebook)
    make_slides(notebook)
    exporter = Slides(template_name="slides", reveal_url_prefix=REVEAL, reveal_theme="white", **settings)
    exporter.register_preprocessor(TagRemovePreprocessor(remove_input_tags={DRAWING}), enabled=True)
    slides, _ = exporter.from_notebook_node(notebook)
    return page, slides


def write(path, implementation):
    """Run one notebook and write its page and its slides; its title."""
    notebook = nbformat.read(path, as_version=4)
    execute(notebook, path.parent, implementation)
    name = title(notebook)
    page, slides = pages(notebook)
    (BOOK / f"{path.stem}.html").write_text(page, encoding="utf-8")
    (BOOK / f"{path.stem}.slides.html").write_text(slides, encoding="utf-8")
    return name


def copy_reveal():
    """Put reveal.js beside the slides; False where it is not installed."""
    package = importlib.util.find_spec("sphinx_revealjs")
    if package is None:
        return False
    files = Path(package.submodule_search_locations[0]) / "_static" / "revealjs"
    for folder in ("dist", "plugin/notes"):
        shutil.copytree(files / folder, BOOK / REVEAL / folder, dirs_exist_ok=True)
    return True


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


def add_arguments(parser):
    parser.add_argument("names", nargs="*", help="beginnings of notebook names (default: all)")
    parser.add_argument("--impl", default="reference", help="the implementation to run (default: reference)")


def run(args):
    """Build the book; the exit code."""
    BOOK.mkdir(parents=True, exist_ok=True)
    if not copy_reveal():
        print("reveal.js is missing: pip install --no-deps -r requirements-slides.txt", file=sys.stderr)
        return 1
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
