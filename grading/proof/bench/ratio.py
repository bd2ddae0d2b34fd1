"""Two pieces of work timed in turn, A B A B, so that a machine whose speed drifts does not decide."""

import statistics
import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Ratio:
    """Wall seconds of A and of B, its peer, pair by pair."""

    name: str
    a: str
    b: str
    a_seconds: tuple
    b_seconds: tuple

    @property
    def pairs(self):
        """A / B of each pair."""
        return [a / b for a, b in zip(self.a_seconds, self.b_seconds, strict=True)]

    def cells(self):
        """What a table says about it."""
        pairs = self.pairs
        return (
            self.name, self.a, self.b, *(f"{statistics.median(side):.3f}" for side in (self.a_seconds, self.b_seconds)),
            f"{statistics.median(pairs):.2f}", f"{min(pairs):.2f} to {max(pairs):.2f}", str(len(pairs)),
        )  # fmt: skip


HEAD = ("name", "A", "B", "A seconds", "B seconds", "A / B", "pairs from", "pairs")


def in_turn(name, runs, a, b, warm_up=True):
    """The Ratio of two (label, work) pairs, after a warm-up of each."""
    (a_label, a_work), (b_label, b_work) = a, b
    if warm_up:
        a_work()
        b_work()
    pairs = [(_seconds(a_work), _seconds(b_work)) for _ in range(runs)]
    return Ratio(name, a_label, b_label, *zip(*pairs, strict=True))


def table(ratios):
    """The ratios as the lines of a Markdown table, its columns aligned."""
    rows = [HEAD, *(ratio.cells() for ratio in ratios)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    rows.insert(1, tuple("-" * width for width in widths))
    return [f"| {' | '.join(map(str.ljust, row, widths))} |" for row in rows]


def _seconds(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
