"""A count is one line: one that changes where a terminal is, and one at the end where none is."""

import re
import sys

from nanolm.command_line import counted


def test_a_log_gets_one_line_at_the_end(capsys):
    assert list(counted("runs", iter("abc"), 3)) == ["a", "b", "c"]
    assert re.fullmatch(r"runs: 3 of 3, \d+ s\n", capsys.readouterr().err)


def test_a_terminal_gets_one_line_that_changes(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert list(counted("runs", iter("ab"), 2)) == ["a", "b"]
    assert re.fullmatch(r"\rruns: 1 of 2\rruns: 2 of 2\rruns: 2 of 2, \d+ s\n", capsys.readouterr().err)
