"""The grid of parts and kinds of questions: each cell a test with its planted mistakes, or a reason."""

import tomllib
from collections import Counter

from grading.paths import ROOT

GRID = ROOT / "grading" / "proof" / "grid.toml"


def load_grid():
    """part -> {kind: name of the test, or "- " and a reason}."""
    return tomllib.loads(GRID.read_text(encoding="utf-8"))


def kinds():
    """The kinds of questions, in their order."""
    return list(next(iter(load_grid().values())))


def problems(tests, mistakes):
    """What is wrong with the grid: cells without a test that is there, kinds with few mistakes, mistakes of no kind."""
    for part, cells in load_grid().items():
        for kind, cell in cells.items():
            if not cell.startswith("- ") and tests.get(cell) != part:
                yield f"the grid's cell of {part} and {kind} names {cell}, and {part} has no such test"
    counted = Counter(mistake.kind for mistake in mistakes.values())
    for kind in kinds():
        if counted[kind] < 5:
            yield f"only {counted[kind]} planted mistakes are of the kind {kind}"
    for kind in set(counted) - {""} - set(kinds()):
        yield f"there are mistakes of a kind that is not in the grid: {kind}"


def lines(mistakes):
    """The grid as text: a test with its number of planted mistakes, "t" where others prove it, "-" for a reason."""
    grid, names = load_grid(), kinds()
    counted = Counter((mistake.part, mistake.kind) for mistake in mistakes.values())
    yield " " * 12 + "".join(f"{kind:>9}" for kind in names)
    for part, cells in grid.items():
        marks = ["-" if cells[k].startswith("- ") else str(counted[part, k] or "t") for k in names]
        yield f"{part:>12}" + "".join(f"{mark:>9}" for mark in marks)
    asked = sum(not cell.startswith("- ") for cells in grid.values() for cell in cells.values())
    total = sum(map(len, grid.values()))
    yield f"grid: {asked} of {total} cells have a test, {total - asked} a reason (grading/proof/grid.toml);"
    yield f"    {sum(counted[key] for key in counted if key[1])} planted mistakes of these kinds"
