"""One look for all pictures: readable from the back row and by the colour-blind."""

import matplotlib.pyplot as plt
from IPython.display import display

# Okabe and Ito's palette: told apart with any kind of colour vision, and in print by their lightness.
COLOURS = {
    "blue": "#0072B2",
    "orange": "#D55E00",
    "green": "#009E73",
    "purple": "#CC79A7",
    "yellow": "#E69F00",
    "sky": "#56B4E9",
    "black": "#222222",
    "grey": "#8A8A8A",
}
SEQUENTIAL = "cividis"  # colour maps for more and less, and for minus and plus
DIVERGING = "PuOr"

LOOK = {
    "axes.grid": True,
    "axes.labelsize": 17,
    "axes.prop_cycle": plt.cycler(color=list(COLOURS.values())),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 18,
    "axes.titleweight": "bold",
    "figure.constrained_layout.use": True,
    "figure.dpi": 90,
    "font.size": 15,
    "grid.alpha": 0.3,
    "legend.fontsize": 15,
    "legend.frameon": False,
    "lines.linewidth": 3,
    "lines.markersize": 8,
    "xtick.labelsize": 14,
    "ytick.labelsize": 14,
}


def pictures(columns=1, rows=1, height=4.6, width=12, projection=None):
    """A figure of the course's look and its axes: one Axes, or an array where there are more."""
    plt.rcParams.update(LOOK)  # not for this call alone: titles and lines are drawn later
    figure, axes = plt.subplots(
        rows, columns, figsize=(width, height * rows), subplot_kw={"projection": projection} if projection else None
    )
    plt.close(figure)  # it is shown by `show`, once, and not again at the end of the cell
    return figure, axes


def show(figure):
    """Show a figure here."""
    display(figure)


def label_lines(axes):
    """Write each line's label at its right end, in its colour: no legend to look up."""
    for line in axes.get_lines():
        if not line.get_label().startswith("_"):
            axes.annotate(
                line.get_label(), (line.get_xdata()[-1], line.get_ydata()[-1]), xytext=(8, 0),
                textcoords="offset points", color=line.get_color(), va="center", fontsize=15, fontweight="bold",
            )  # fmt: skip
