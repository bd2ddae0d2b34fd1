"""The page's pictures, as SVG in base64. Colours are Okabe and Ito's, which the colour-blind can tell apart."""

import base64
import io
import math

from matplotlib import pyplot

BLUE, SKY, ORANGE, GREY = "#0072B2", "#56B4E9", "#E69F00", "#999999"
STYLE = {
    "font.size": 13, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "nanolm",
    "axes.titlesize": 14, "figure.constrained_layout.use": True,
}  # fmt: skip
WIDTH = 10  # inches


def totals(marks, of):
    """How many students have how many points."""
    figure, axes = _new(3.4)
    top = max([of, *marks])
    step = max(1, math.ceil(top / 20))
    edges = [step * number for number in range(math.ceil(top / step) + 1)]
    axes.hist(marks, bins=edges if len(edges) > 1 else 1, color=BLUE, edgecolor="white")
    axes.axvline(of, color=ORANGE, linewidth=2.5)
    axes.annotate(f"all points: {of:g}", (of, 1.02), xycoords=("data", "axes fraction"), va="bottom", ha="center")
    axes.set_xlim(0, max(edges[-1], 1))
    axes.set_xlabel("points")
    axes.set_ylabel("students")
    axes.yaxis.get_major_locator().set_params(integer=True)
    return _svg(figure)


def parts(found):
    """Part by part: how many students have all of its points, some, or none, and who could not be asked yet."""
    figure, axes = _new(0.42 * len(found) + 1.3)
    names = [f"{'bonus: ' if part.bonus else ''}{part.name} ({part.points})" for part in found]
    left = [0] * len(found)
    shown = {"full": "all points", "some": "some", "none": "none", "open": "waits or not started"}
    colours = (("full", BLUE, "white"), ("some", SKY, "black"), ("none", ORANGE, "black"), ("open", GREY, "black"))
    for label, colour, text in colours:
        widths = [getattr(part, label) for part in found]
        bars = axes.barh(names, widths, left=left, color=colour, edgecolor="white", label=shown[label])
        axes.bar_label(bars, [str(width) if width else "" for width in widths], label_type="center", color=text)
        left = [start + width for start, width in zip(left, widths, strict=True)]
    axes.invert_yaxis()
    axes.set_xlabel("students")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.legend(ncols=4, loc="lower left", bbox_to_anchor=(0, 1), frameon=False)
    return _svg(figure)


def mistakes(made, most=15):
    """The most frequent mistakes, by how many students made each."""
    made = made[:most]
    figure, axes = _new(0.42 * len(made) + 0.9)
    bars = axes.barh([entry.about["id"] for entry in made], [len(entry.students) for entry in made], color=BLUE)
    axes.bar_label(bars, padding=4)
    axes.invert_yaxis()
    axes.set_xlabel("students")
    axes.xaxis.get_major_locator().set_params(integer=True)
    return _svg(figure)


def _new(height):
    with pyplot.rc_context(STYLE):
        return pyplot.subplots(figsize=(WIDTH, height))


def _svg(figure):
    stream = io.BytesIO()
    with pyplot.rc_context(STYLE):
        figure.savefig(stream, format="svg", metadata={"Date": None})
    pyplot.close(figure)
    return base64.b64encode(stream.getvalue()).decode("ascii")
