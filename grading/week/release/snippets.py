"""The Python in a text that is not all Python: comments, docstrings, Markdown, prose, half a file."""

import re
from functools import cache

from grading.week.release import fragments


@cache
def code_in(text):
    """The Python in a text that is not all Python: a stream for each stretch of lines that can be read.

    A statement may go over several lines. Headers (`def`, `if`) don't end a stretch, and marks that quote or
    comment a line don't count. A line that is no Python is searched for the Python between its words.
    """
    stretches, current, lines, at = [], [], text.splitlines(), 0
    while at < len(lines):
        taken, steps = _statement(lines, at)
        if steps is None:
            stretches += [current, *_among_words(lines[at], at + 1)]
            current = []
        else:
            current = current + [step for step in steps if step]
        at += taken
    return [stretch for stretch in (*stretches, current) if stretch]


LONGEST = 12  # lines of one statement
BETWEEN = re.compile(r"`+|[,;:.](?= )|[.]$| {2,}|\b(?:return|is|are|write|with|then)\b", re.IGNORECASE)


def _statement(lines, at):
    """(lines used, its Steps); [] for a line that says nothing, None where the line is not Python."""
    statement = ""
    for taken in range(1, min(LONGEST, len(lines) - at) + 1):
        statement += _bare(lines[at + taken - 1]) + "\n"
        if taken == 1 and not statement.strip():
            return 1, []
        if sum(map(statement.count, "([{")) > sum(map(statement.count, ")]}")):
            continue
        for tail in ("", " pass"):
            tree = fragments.parse(statement.strip() + tail)
            if tree is not None:
                return taken, fragments.stream(tree, at + 1)
        break
    return 1, None


def _among_words(line, number):
    for piece in _cut(line):
        tree = fragments.parse(piece.strip()) if any(sign in piece for sign in "(*@+/=[") else None
        if tree is not None:
            yield [step for step in fragments.stream(tree, number) if step]


def _cut(line):
    """A line in pieces, cut at marks and at words, but inside brackets only at a backtick."""
    piece, end = "", 0
    for mark in BETWEEN.finditer(line):
        piece += line[end : mark.start()]
        end = mark.end()
        if "`" in mark[0] or sum(map(piece.count, "([{")) <= sum(map(piece.count, ")]}")):
            yield piece
            piece = ""
        else:
            piece += mark[0]
    yield piece + line[end:]


def _bare(line):
    line = line.strip()
    while line[:1] in ("#", ">", "|") or line[:4] == "... ":
        line = line.lstrip("#>|").removeprefix("... ").strip()
    return "" if line.startswith(("```", "~~~")) else line
