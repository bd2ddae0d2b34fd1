"""The pictures of the week's notebook. None of them needs the exercises."""

import torch

from nanolm.classroom.style import COLOURS, pictures, show

BLUE, ORANGE, GREEN, GREY = (COLOURS[name] for name in ("blue", "orange", "green", "grey"))


def show_rmsnorm():
    """Arrows of any length land on the circle of radius sqrt(D), in their own direction."""
    figure, axes = pictures(width=7, height=5)
    turn = torch.linspace(0, 2 * torch.pi, 200)
    radius = 2**0.5
    axes.plot(radius * turn.cos(), radius * turn.sin(), color=GREY, linewidth=2)
    for x, y in ((3.0, 4.0), (0.5, -0.3), (-2.4, 1.0)):
        length = (x * x + y * y) ** 0.5
        axes.annotate("", (x, y), (0, 0), arrowprops={"arrowstyle": "->", "color": ORANGE, "linewidth": 2})
        axes.plot(radius * x / length, radius * y / length, "o", color=BLUE)
        axes.annotate(f"({x:g}, {y:g})", (x, y), xytext=(6, 4), textcoords="offset points", color=ORANGE)
    axes.set(xlim=(-3.5, 4.5), ylim=(-2, 4.6), aspect="equal", title="D = 2: before (orange) and after (blue)")
    show(figure)


def show_gate():
    """A value of 3 through gates of 2, 0 and -2."""
    figure, axes = pictures(width=8, height=4)
    gates = torch.tensor([2.0, 0.0, -2.0])
    passed = torch.nn.functional.silu(gates) * 3
    bars = axes.bar([f"gate {gate:g}" for gate in gates.tolist()], passed, color=(BLUE, GREY, ORANGE))
    axes.bar_label(bars, fmt="%.2f", fontsize=16, padding=4)
    axes.axhline(3, color=GREEN, linestyle=":", label="the value: 3")
    axes.legend()
    axes.set(ylim=(-1.6, 7), title="What the gate lets through")
    show(figure)


def show_rope():
    """How far four pairs of channels have turned, position by position."""
    figure, axes = pictures(width=9, height=4)
    positions = torch.arange(0, 33)
    for pair, colour in enumerate((BLUE, ORANGE, GREEN, GREY)):
        speed = 10_000.0 ** (-pair / 4)
        axes.plot(positions, (positions * speed).cos(), color=colour, label=f"pair {pair}: {speed:g} a step")
    axes.legend(loc="upper right", ncols=2, fontsize=13)
    axes.set(xlabel="position m", ylabel="cosine of the angle", ylim=(-1.2, 2.2), title="H = 8: four hands of a clock")
    show(figure)


def show_sharing():
    """Which query head reads which key/value head, and which token sees which."""
    figure, (heads, tokens) = pictures(columns=2, width=11, height=4)
    for query in range(4):
        shared = query // 2
        colour = (BLUE, ORANGE)[shared]
        heads.plot([query, 2 * shared + 0.5], [1, 0], color=colour)
        heads.text(query, 1.08, f"q{query}", ha="center", color=colour, fontsize=17)
    for shared, colour in enumerate((BLUE, ORANGE)):
        heads.text(2 * shared + 0.5, -0.2, f"k{shared}, v{shared}", ha="center", color=colour, fontsize=17)
    heads.set(xlim=(-0.5, 3.5), ylim=(-0.4, 1.4), title="N = 4, K = 2, G = 2")
    heads.axis("off")
    for row in range(4):
        tokens.plot(range(row + 1), [row] * (row + 1), "s", color=BLUE, markersize=26)
    tokens.set(xlim=(-0.6, 3.6), ylim=(3.6, -0.6), xticks=range(4), yticks=range(4), aspect="equal")
    tokens.set(xlabel="sees token", ylabel="token", title="T = S = 4")
    show(figure)


def show_block():
    """The stream runs through; two branches read it and add to it."""
    figure, axes = pictures(width=11, height=3)
    axes.annotate("", (10, 0), (0, 0), arrowprops={"arrowstyle": "->", "color": BLUE, "linewidth": 5})
    axes.text(0, 0.15, "x", color=BLUE, fontsize=18)
    for start, name in ((1, "attention"), (5.5, "FFN")):
        axes.plot([start, start, start + 3, start + 3], [0, 1, 1, 0], color=GREY)
        box = {"boxstyle": "round", "facecolor": "white", "edgecolor": ORANGE, "linewidth": 2}
        axes.text(start + 0.6, 1, "norm", ha="center", va="center", bbox=box)
        axes.text(start + 2, 1, name, ha="center", va="center", bbox=box)
        axes.plot(start + 3, 0, "o", color=BLUE, markersize=22)
        axes.text(start + 3, -0.02, "+", color="white", ha="center", va="center", fontsize=20)
    axes.set(xlim=(-0.2, 10.4), ylim=(-0.5, 1.5))
    axes.axis("off")
    show(figure)
