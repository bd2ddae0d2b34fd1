"""`python -m nanolm check`: one screen. How far each part is, the one thing to do next, and what is wrong with it.

The verdict is pytest's own: the same tests, the same states, and its exit code where all of the week is asked.
"""

import ast
import json
import re
import sys
import textwrap
from pathlib import Path

from nanolm import impl
from nanolm.student import hint
from nanolm.student.run_tests import RIGHT, NotRun, parts, run_tests

HELP = "how far you are, and what to do next: one screen; check rope or check apply_rope asks only that"
WIDTH, HEIGHT = 79, 23  # of a terminal of 80 x 24, with a line left for the prompt
BAR = 10
MOST_TOLD = 9  # lines of one red test


def add_arguments(parser):
    parser.add_argument("what", nargs="?", metavar="PART_OR_EXERCISE", help="e.g. rope, or apply_rope")
    parser.add_argument("--all", action="store_true", help="every test with its state and points")
    parser.add_argument("--json", action="store_true", help="the same for programs")


def run(args):
    """Print the screen; 0 where all that was asked is right, 1 where not or where nothing could be asked."""
    try:
        found = _found(args.what)
    except NotRun as reason:
        print(f"The check did not run: {reason}", file=sys.stderr)
        return 1
    if args.json:
        print(json.dumps(as_data(*found), indent=1))
    else:
        print(*(every_test if args.all else screen)(*found), sep="\n")
    asked, whole = found[1], args.what is None
    return found[0].code if whole else int(any(test["outcome"] not in RIGHT for test in asked))


def check(what=None):
    """The same screen in a notebook: `from nanolm import check; check("rope")`."""
    try:
        print(*screen(*_found(what)), sep="\n")
    except NotRun as reason:
        print(f"The check did not run: {reason}")


def _found(what):
    """(the Run of the whole week, the tests that were asked for). What a part is made of is needed to judge it."""
    week = parts()
    exercises = {name: week.part_of_exercise(name) for name in impl.FILE_OF}
    if what is not None and what not in (*week.PARTS, *exercises):
        raise NotRun(f"there is no part or exercise {what!r}: {', '.join(week.PARTS)}, or {', '.join(exercises)}.")
    found = run_tests()
    asked = [
        test for test in found.tests
        if what is None or test["part"] == what or what in exercises and what in test["asked"]
        and test["part"] == exercises[what]
    ]  # fmt: skip
    return found, asked


def screen(found, asked):
    """The lines of the screen."""
    week = parts()
    shown = [part for part in week.PARTS if any(test["part"] == part for test in asked)]
    core = [part for part in shown if part in week.CORE]
    open_core = [part for part in core if not _is_right(_of(asked, part))]
    lines = [_title(found, asked), *_just_right(found), ""]
    done = [part for part in shown if _is_right(_of(asked, part))]
    if done:
        lines += textwrap.wrap(f"right     {', '.join(done)}", WIDTH, subsequent_indent=" " * 10)
    lines += (_row(part, _of(asked, part)) for part in open_core)
    depth = [part for part in shown if part in week.DEPTH and part not in done]
    if depth and open_core:
        lines += textwrap.wrap(f"bonus     {', '.join(depth)}: when the core stands", WIDTH)
    else:
        lines += (_row(part, _of(asked, part)) for part in depth)
    lines.append("")
    return lines + _next(found, asked, HEIGHT - len(lines))


def _title(found, asked):
    week, points = parts(), []
    for title, of in (("points", week.CORE), ("of bonus", week.DEPTH)):
        tests = [test for test in asked if test["part"] in of]
        if tests:
            points.append(f"{_earned(tests)} of {sum(test['points'] for test in tests)} {title}")
    return f"{impl.printable(found.implementation.folder.name)[:40]}: {', '.join(points)}"


def _just_right(found):
    """What has become right since the last run, and what is made of it and comes next."""
    if not found.newly_right:
        return []
    week = parts()
    made_of_them = {
        week.EXERCISE_PART.get(name, "logits")
        for name, ingredients in week.MADE_OF.items()
        if set(ingredients) & set(found.newly_right)
    }
    opened = [part for part in week.PARTS if part in made_of_them and not _is_right(_of(found.tests, part))]
    said = f"JUST RIGHT: {', '.join(found.newly_right)}." + (f" Now for {', '.join(opened)}." if opened else "")
    return textwrap.wrap(said, WIDTH)


def _row(part, tests):
    passed = sum(test["outcome"] in RIGHT for test in tests)
    bar = "#" * (BAR * passed // len(tests))
    points = f"{_earned(tests)} of {sum(test['points'] for test in tests)} points"
    return f"{part:<10}[{bar:<{BAR}}] {passed:>3} of {len(tests):>2} tests  {points:<16}{_state(tests)}".rstrip()


def _state(tests):
    """The most urgent thing to say of a part, in a word or two."""
    states = [test["outcome"] for test in tests]
    if wrong := states.count("failed"):
        return f"{wrong} wrong"
    if "not started" in states:
        return "not started" if not set(states) & set(RIGHT) else "begun"
    return next((test["message"].split(":")[0] for test in tests if test["outcome"] == "waiting"), "")


def _next(found, asked, room):
    """What to do next, in at most `room` lines: a mistake before what is not started, in the order of the week."""
    week = parts()

    def urgency(test):
        return test["part"] not in week.CORE, test["outcome"] != "failed", week.PARTS.index(test["part"])

    of_parts = [test for test in asked if test["part"] in week.PARTS]  # the others are advice
    to_do = sorted((test for test in of_parts if test["outcome"] in ("failed", "not started")), key=urgency)
    if not to_do:
        return _nothing_left(asked)
    first = to_do[0]
    if first["outcome"] == "not started":
        name = _stub(first)
        return [f"next      {name}: {_place(found, name)}", f"          {_command('check', name.split('.')[0])}"]
    return _told(found, [test for test in to_do if urgency(test) == urgency(first)], room)


def _told(found, red, room):
    """Of one part's red tests the first, with what is known of it, where to look, and the next command."""
    from machinery import naming, telling

    first, *_ = telling.grouped(red, {test["name"]: test["mistake"] for test in red if test["mistake"]})
    test = first.first
    place = re.search(r"([\w/]+\.py), line (\d+)", test.get("symptom", ""))
    exercise = next((name for name in reversed(test["asked"]) if name in impl.FILE_OF), "")
    where = f"{_shown(found, place[1])}:{place[2]}" if place else _place(found, exercise)
    lines = [f"next      {exercise or test['part']}: {where}", f"FAILED    {test['id']}"]
    details = _wrapped(telling.details(test, known=bool(first.mistake)), "    ")
    said = _wrapped(naming.sentences(found.naming, test["part"]))
    end = [] if any("nanolm hint" in line for line in (*details, *said)) else [f"    {_command('check', test['part'])}"]
    left = room - len(lines) - len(end)
    said = said[: max(0, min(len(said), left - 3))]
    return lines + details[: min(MOST_TOLD, left - len(said))] + said + end


def _wrapped(lines, indent=""):
    """Lines as wide as the screen; columns of numbers keep their spaces."""
    wrapped = []
    for line in lines:
        inner = indent + line[: len(line) - len(line.lstrip())]
        wrapped += textwrap.wrap(
            indent + line, WIDTH, subsequent_indent=f"{inner}    ", drop_whitespace=True, replace_whitespace=False
        )
    return wrapped


def _nothing_left(asked):
    waits = [test for test in asked if test["outcome"] == "waiting"]
    if waits:
        return [f"next      {waits[0]['message']}"[:WIDTH], f"          {_command('check')}"]
    week = parts()
    if {test["part"] for test in asked} >= set(week.CORE):
        return ["All right. A real model speaks through your code:", f"    {_command('generate')} --prompt 'Once upon'"]
    return ["All right.", f"    {_command('check')}"]


def every_test(found, asked):
    """A line for each test, with what is wrong under the first of its kind."""
    from machinery import telling

    return [_title(found, asked), *telling.one_by_one(asked, found.naming)]


def as_data(found, asked):
    """What the screen says, as plain data."""
    week, naming = parts(), {test["name"]: test["mistake"] for test in asked}
    return {
        "implementation": str(found.implementation.folder),
        "parts": [
            {
                "part": part, "core": part in week.CORE, "right": _is_right(tests), "state": _state(tests),
                "tests": len(tests), "passed": sum(test["outcome"] in RIGHT for test in tests),
                "earned": _earned(tests), "points": sum(test["points"] for test in tests),
            }
            for part in week.PARTS if (tests := _of(asked, part))
        ],
        "tests": [
            {name: test[name] for name in ("id", "part", "points", "outcome", "message")}
            | {"mistake": naming[test["name"]], "hint": hint.command(naming[test["name"]] or test["name"])}
            for test in asked
        ],
    }  # fmt: skip


def _of(tests, part):
    return [test for test in tests if test["part"] == part]


def _earned(tests):
    return sum(test["points"] for test in tests if test["outcome"] == "passed")


def _is_right(tests):
    return all(test["outcome"] in RIGHT for test in tests)


def _stub(test):
    """The exercise that a stub's message names, else the last that was asked."""
    named = re.search(r"([\w.]+) is not started", test["message"])
    return named[1] if named else [test["part"], *test["asked"]][-1]


def _place(found, exercise):
    """FILE:LINE of an exercise, as editors and terminals make a link of it; of a class, its forward."""
    name, _, method = exercise.partition(".")
    file = impl.FILE_OF.get(name)
    if file is None:
        return _shown(found, "")
    try:
        body = ast.parse(found.implementation.source(file)).body
    except (SyntaxError, ValueError, impl.ImplementationError):
        body = []  # its tests say what is wrong with it
    node = next((n for n in body if getattr(n, "name", "") == name), None)
    if isinstance(node, ast.ClassDef):
        node = next((n for n in node.body if getattr(n, "name", "") == (method or "forward")), node)
    return f"{_shown(found, f'{file}.py')}:{node.lineno if node else 1}"


def _shown(found, file):
    path = found.implementation.folder / file
    here = Path.cwd()
    return impl.printable(str(path.relative_to(here) if path.is_relative_to(here) else path))


def _command(*words):
    return f"python -m nanolm {' '.join(words)}"
