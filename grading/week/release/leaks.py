"""Nothing of the solutions and rubrics may be in what students get: every file is read and compared.

What is looked for are the marked regions of reference/ (see grading.authoring.marked), in two ways, and the rubrics
of the week's notebook in the first:
  - their lines, without spaces, anywhere in a text;
  - their statements and expressions in a normal form (see grading.week.release.fragments), in all that can be read
    as Python: code, a notebook's cells, comments, docstrings, a fence in Markdown, prose.
A piece counts only where it is large enough to say something, and not where the stubs show it themselves:
everybody writes `return x`, and `x[:, :-1]` is no secret.
"""

import ast
import json
import re
import textwrap
import unicodedata
from dataclasses import dataclass
from functools import cached_property

from grading.authoring.marked import Gap, split
from grading.authoring.stubs import generate
from grading.paths import REFERENCE, ROOT
from grading.week.release import contents, fragments
from grading.week.release.snippets import code_in
from nanolm.impl import CONTRACT

# From where a piece says something: (names, numbers and operations in all, of these not variables). A little less,
# and what everybody writes is an alarm: x[:, i : i + 1] is (7, 3), `B, T, D = x.shape` (7, 0), and the two statements
# a = b / c, d = e * f are (10, 2).
EXPRESSION, STATEMENT, TWO_STATEMENTS = (8, 3), (7, 3), (12, 2)
LINE, REMARK = 30, 25  # letters of any line of code, and of a remark or a rubric, without spaces

WEEK, NOTEBOOK = ROOT / "grading" / "week" / "course_template" / "source" / "week06", "week06.ipynb"


@dataclass(frozen=True)
class Leak:
    """A place in the bundle that shows a piece of the reference, or that can't be vouched for."""

    where: str
    line: int | None
    what: str

    def __str__(self):
        return f"{self.where}{f', line {self.line}' if self.line else ''}: {self.what}"


@dataclass(frozen=True)
class Secret:
    """A piece of what only graders see: what it is, and where it stands."""

    what: str
    file: str
    line: int

    def __str__(self):
        return f"{self.what} ({self.file}, line {self.line})"


class Guard:
    """What must not get out, ready to be looked for."""

    def __init__(self, sources=None, stubs=None, notebook=None):
        """`sources` {module: marked text}, `stubs` {file: text} and the week's notebook; its own where left out."""
        if sources is None:
            sources = {module: (REFERENCE / f"{module}.py").read_text(encoding="utf-8") for module in CONTRACT}
        self._pieces, self._lines, self._known = {}, {}, {}
        for module, text in sources.items():
            for gap in split(text, f"{REFERENCE.name}/{module}.py"):
                if isinstance(gap, Gap):
                    self._keep(gap, f"{REFERENCE.name}/{module}.py")
        self._keep_rubrics((WEEK / NOTEBOOK).read_text(encoding="utf-8") if notebook is None else notebook)
        self._forget(generate() if stubs is None else stubs)

    def leaks(self, name, data):
        """Every Leak in the file `name` with the bytes `data`, in order."""
        found = {}
        for part in contents.read(name, data):
            if isinstance(part, contents.Problem):
                found[part.where, None] = Leak(part.where, None, part.what)
                continue
            if part.text not in self._known:
                self._known[part.text] = list(self._in_text(part.text))
            for line, what in self._known[part.text]:
                place = part.line + line - 1
                found.setdefault((part.where, place), Leak(part.where, place, what))
        return list(found.values())

    def _keep(self, gap, file):
        steps = fragments.stream(fragments.parse(textwrap.dedent("\n".join(gap.lines))), gap.line)
        for piece, step in _pieces(steps):
            self._pieces.setdefault(piece, Secret(f"the solution of {gap.exercise.name}", file, step.line))
        telling = {step.line for _, step in _pieces(steps, two=False)}
        for number, line in enumerate(gap.lines, gap.line):
            code, _, remark = line.partition("  # ")
            is_header = code.endswith(":")  # a loop or a condition is anybody's
            if not is_header and (number in telling or len(_solid(code)) >= LINE):
                self._keep_line(code, Secret(f"the solution of {gap.exercise.name}", file, number))
            if len(_solid(remark)) >= REMARK:
                self._keep_line(remark, Secret(f"the solution of {gap.exercise.name}", file, number))

    def _keep_rubrics(self, notebook):
        """What the graders' notebook says in the cells that students fill."""
        for cell in json.loads(notebook)["cells"]:
            role = cell["metadata"].get("nbgrader", {})
            for number, line in enumerate("".join(cell["source"]).splitlines() if role.get("solution") else (), 1):
                if len(_solid(line)) >= REMARK:
                    self._keep_line(line, Secret(f"the rubric of {role['grade_id']}", NOTEBOOK, number))

    def _keep_line(self, words, secret):
        self._lines.setdefault(_solid(words), secret)

    def _forget(self, stubs):
        """What the stubs show is no secret."""
        for text in stubs.values():
            for piece, _ in _pieces_of_text(text):
                self._pieces.pop(piece, None)
            shown = _solid(text)
            self._lines = {line: secret for line, secret in self._lines.items() if line not in shown}

    @cached_property
    def _any_line(self):
        return re.compile("|".join(re.escape(line) for line in sorted(self._lines, key=len, reverse=True)))

    def _in_text(self, text):
        """(line, what) for each piece of a solution that a text shows."""
        solid, lines = _solid_with_lines(text)
        for match in self._any_line.finditer(solid) if self._lines else ():
            yield lines[match.start()], f"a line of {self._lines[match[0]]}"
        for piece, step in _pieces_of_text(text):
            if piece in self._pieces:
                yield step.line, f"code of {self._pieces[piece]}, whatever its names"


def _pieces_of_text(text):
    """(normal form, Step) of every piece of code in a text that is large enough to say something."""
    tree = fragments.parse(text)
    if tree is not None:
        yield from _pieces(fragments.stream(tree))
        for node in ast.walk(tree):  # a string with a new line spelt \n
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and "\n" in node.value:
                if node.value not in text:
                    for stretch in code_in(node.value):
                        yield from _pieces([fragments.Step(step.tree, node.lineno) for step in stretch])
    for stretch in code_in(text):
        yield from _pieces(stretch)


def _pieces(steps, two=True):
    """(normal form, Step) of each expression, statement and (if `two`) pair of statements that says something."""
    before = None
    for step in steps:
        if step is not None:
            for part in fragments.parts_of(step.tree):
                if _says_something(STATEMENT if part is step.tree else EXPRESSION, part):
                    yield fragments.text_of(part), step
            if two and before is not None and _says_something(TWO_STATEMENTS, before.tree, step.tree):
                yield fragments.text_of(before.tree, step.tree), before
        before = step


def _says_something(least, *trees):
    weight, content = least
    return sum(map(fragments.weight, trees)) >= weight and sum(map(fragments.content, trees)) >= content


def _solid(text):
    return _solid_with_lines(text)[0]


def _solid_with_lines(text):
    """A text without spaces, quotes' kinds and marks at the start of a line, and the line of each letter."""
    letters, lines = [], []
    for number, line in enumerate(unicodedata.normalize("NFKC", text).splitlines(), 1):
        bare = re.sub(r"^[\s#>|.]+", "", line).replace('"', "'")
        kept = [letter for letter in bare if not letter.isspace() and unicodedata.category(letter) != "Cf"]
        letters += kept
        lines += [number] * len(kept)
    return "".join(letters), lines
