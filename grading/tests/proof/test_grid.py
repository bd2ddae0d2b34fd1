"""The grid of parts and kinds: every cell names a test that is there or a reason, and every kind has its mistakes."""

import ast

from grading.paths import ROOT
from grading.proof import grid
from grading.proof.bank import load_mistakes
from machinery import parts

TESTS = {
    node.name: parts.part_of_test(node.name)
    for path in (ROOT / "tests").glob("test_*.py")
    for node in ast.parse(path.read_text(encoding="utf-8")).body
    if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
}


def test_every_part_is_asked_every_kind_or_says_why_not():
    cells = grid.load_grid()
    assert set(cells) == set(parts.PARTS)
    assert all(list(row) == grid.kinds() for row in cells.values())
    assert all(len(cell.split()) > 3 for row in cells.values() for cell in row.values() if cell.startswith("- "))


def test_the_grid_of_the_bank_has_no_problem():
    assert list(grid.problems(TESTS, load_mistakes())) == []


def test_a_cell_without_its_test_and_a_kind_without_mistakes_are_problems():
    found = list(grid.problems({}, {}))
    assert any("has no such test" in problem for problem in found)
    assert sum("planted mistakes are of the kind" in problem for problem in found) == len(grid.kinds())
