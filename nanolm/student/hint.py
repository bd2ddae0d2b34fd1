"""`python -m nanolm hint NAME`: help with a red test or a known mistake, a little more each time."""

import sys
import tomllib
from functools import cache

from nanolm.impl import TESTS

HELP = "a hint for a red test or a mistake, e.g. hint test_rmsnorm_does_not_center"
MISTAKES = TESTS / "machinery" / "hints.toml"


def add_arguments(parser):
    parser.add_argument("name", help="a test's name, or the id of a mistake")
    parser.add_argument(
        "level", nargs="?", type=int, choices=(1, 2, 3), default=1, help="1 a nudge, 2 the idea, 3 the line"
    )


def run(args):
    """Print the hint; 1 where the name is not known."""
    name = args.name.split("::")[-1].split("[")[0]  # as pytest prints it: FILE::TEST[CASE]
    lines = hint(mistakes().values(), name, args.level)
    if lines is None:
        print(
            f"There is no hint on {args.name!r}: copy a name that pytest prints behind 'nanolm hint'.", file=sys.stderr
        )
        return 1
    print(*lines, sep="\n")
    return 0


@cache
def mistakes():
    """id -> what a student may read about a known mistake."""
    entries = tomllib.loads(MISTAKES.read_text(encoding="utf-8"))["mistake"]
    return {entry["id"]: entry for entry in entries}


def command(name):
    """What to type for a hint on a test or a mistake; empty where there is none to give."""
    known = any(name in (entry["id"], entry["test"]) for entry in mistakes().values())
    return f"python -m nanolm hint {name}" if known else ""


def hint(entries, name, level):
    """Lines to print for a test's name or a mistake's id, or None for neither."""
    for entry in entries:
        if entry["id"] == name:
            return _of_mistake(entry, level)
    caught = [entry for entry in entries if entry["test"] == name]
    if not caught:
        return None
    if len(caught) == 1:
        return _of_mistake(caught[0], level)
    lines = [f"{name} is red for several reasons. Which of these questions is yours?", ""]
    for entry in caught:
        lines += [f"  {entry['cause']}", f"      python -m nanolm hint {entry['id']}"]
    return lines


def _of_mistake(entry, level):
    lines = [entry["symptom"], entry["cause"], "", f"Hint {level} of 3: {entry['hints'][level - 1]}", ""]
    if level < 3:
        lines.append(f"More: python -m nanolm hint {entry['id']} {level + 1}")
    lines.append(f"Explained in notebooks/{entry['notebook']}")
    return lines
