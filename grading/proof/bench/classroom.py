"""The class: a slider's new picture against the same picture drawn plainly, notebooks against a bare kernel."""

import contextlib
import io
import itertools

from grading.paths import ROOT
from grading.proof.bench.ratio import in_turn

POINTS = 400
NOTEBOOKS = ROOT / "notebooks"


def watch(runs):
    """From the change of a control to the new picture in the widget."""
    from nanolm.classroom.widgets import slider
    from nanolm.classroom.widgets import watch as shown

    widths = [1, 2, 4, 8, 16]
    with contextlib.redirect_stdout(io.StringIO()):  # outside a notebook the widget would print its name
        box = shown(_wave, width=slider("width", widths))
    control, picture = box.children
    turn = itertools.cycle(widths[1:] + widths[:1])

    def move():
        before = picture.value
        control.value = next(turn)
        if picture.value == before:
            raise SystemExit("the slider moved and the picture did not change: there is no time to measure")

    def draw():
        _wave(next(turn)).savefig(io.BytesIO(), format="png")

    yield in_turn("a slider's new picture", runs, ("watch, from the change on", move), ("draw and save plainly", draw))


def notebooks(runs):
    """Each notebook from the start of its kernel to its last cell; they take minutes, so a third of the pairs."""
    import nbformat

    from grading.authoring.book import execute

    def bare():
        cell = nbformat.v4.new_code_cell("import torch")
        execute(nbformat.v4.new_notebook(cells=[cell]), NOTEBOOKS, "reference")

    for path in sorted(NOTEBOOKS.glob("*.ipynb")):

        def run(path=path):
            execute(nbformat.read(path, as_version=4), NOTEBOOKS, "reference")

        sides = ("all its cells", run), ("a kernel that imports torch", bare)
        yield in_turn(f"notebook {path.stem}", max(1, runs // 3), *sides, warm_up=False)


def _wave(width):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4), dpi=100)
    axes = figure.subplots()
    axes.plot([(x / POINTS * width) % 1 for x in range(POINTS)])
    axes.set_title(f"width {width}")
    return figure
