"""A result of the two-zone grader as what nbgrader reads and shows: outputs of a part's cell, and a summary.

Whatever came from a submission is printable ASCII when it arrives here (wire.clean), and is escaped for HTML.
"""

from html import escape

import nbformat.v4

from grading.grader.inside.text import clean
from grading.grader.states import ADVICE, NOT_STARTED, NOT_SUBMITTED, PASSED, WAITING
from nanolm.student.hint import command as command_of
from nanolm.student.hint import mistakes

HEAD = ("test", "points", "what happened", "next")
# Each output brings its look along: it is shown in formgrader, on the feedback page, and in JupyterLab.
CELL = "text-align:left;vertical-align:top;padding:2px 8px"
RED, ADVISED = "#a34700", "#005a8c"
NO_HINT = (ADVICE, NOT_STARTED, NOT_SUBMITTED, WAITING)  # the state says what comes next


def earned(tests, part):
    """What a part earned, as a whole number."""
    return sum(test["earned"] for test in tests if test["part"] == part)


def part_outputs(tests, part, core):
    """The outputs of a part's cell; nbgrader.utils.determine_grade reads the points of a core part from the last."""
    mine = [test for test in tests if test["part"] == part]
    points = earned(tests, part)
    possible = sum(test["points"] for test in mine)
    title = f"{part}: {points} of {possible} points{'' if core else ' of bonus'}"
    shown = nbformat.v4.new_output("display_data", {"text/plain": _plain(title, mine), "text/html": _html(title, mine)})
    if not core:
        return [shown]
    grade = nbformat.v4.new_output("execute_result", {"text/plain": str(float(points))}, execution_count=1)
    return [shown, grade]


def summary(result, notes, bonus):
    """The text of a cell for the top of the notebook: the sum, and all that the student should know besides."""
    added = sum(bonus.values())
    lines = [
        f"<p>The code earned {result['points'] - added} points, and {added} points of bonus on top. "
        "The written answers are added when they have been read.</p>"
    ]
    files = [sentence for sentence in result["files"].values() if sentence != "taken in"]
    sentences = dict.fromkeys((*result["notes"], *files, *notes))  # each once
    if sentences:
        items = "".join(f"<li>{escape(clean(sentence))}</li>" for sentence in sentences)
        lines.append(f"<p>About what you handed in:</p><ul>{items}</ul>")
    return f'<div class="week-summary">{"".join(lines)}</div>'


def _known(tests):
    """{mistake's id: what is known of it} for the mistakes that these tests have met, each once."""
    met = dict.fromkeys(test["mistake"] for test in tests if test["mistake"] in mistakes())
    return {name: mistakes()[name] for name in met}


def _rows(tests):
    """(test's name, points, state, what happened, command) for each test that did not pass."""
    for test in tests:
        if test["state"] != PASSED:
            command = "" if test["state"] in NO_HINT else command_of(test["mistake"] or test["name"])
            happened = "" if test["message"].startswith(test["state"]) else test["message"]  # "waiting for rope"
            state = test["state"] if happened else test["message"] or test["state"]
            yield clean(test["name"]), _points(test), clean(state), clean(happened), clean(command)


def _points(test):
    return f"{test['earned']} of {test['points']}"


def _passed(tests):
    """One line on the tests that passed, and their names."""
    names = [test for test in tests if test["state"] == PASSED]
    word = "test" if len(names) == 1 else "tests"
    return f"{len(names)} {word} passed", [f"{clean(test['name'])} ({_points(test)})" for test in names]


def _plain(title, tests):
    lines = [title]
    for name, mistake in _known(tests).items():
        lines += [f"  {mistake['symptom']}", f"  {mistake['cause']}", f"  {command_of(name)}"]
    for name, points, state, happened, command in _rows(tests):
        lines.append(f"  {points:<8} {state:<12} {name}")
        lines += [f"{'':>24}{word}" for word in (happened, command) if word]
    return "\n".join([*lines, f"  {_passed(tests)[0]}"])


def _html(title, tests):
    pieces = [f'<p class="week-title"><b>{escape(title)}</b></p>']
    for name, mistake in _known(tests).items():
        known = f"{escape(mistake['symptom'])}<br>{escape(mistake['cause'])}<br><code>{escape(command_of(name))}</code>"
        pieces.append(f'<p class="week-mistake">{known}</p>')
    rows = []
    for name, points, state, happened, command in _rows(tests):
        colour = ADVISED if state == ADVICE else RED
        what = f'<b style="color:{colour}">{escape(state)}</b>' + (f"<br>{escape(happened)}" if happened else "")
        cells = (f"<code>{escape(name)}</code>", escape(points), what, f"<code>{escape(command)}</code>")
        rows.append("<tr>" + "".join(f'<td style="{CELL}">{cell}</td>' for cell in cells) + "</tr>")
    if rows:
        head = "".join(f'<th style="{CELL}">{name}</th>' for name in HEAD)
        pieces.append(f'<table class="week-part"><tr>{head}</tr>{"".join(rows)}</table>')
    line, names = _passed(tests)
    if names:
        pieces.append(f"<details><summary>{line}</summary>{'<br>'.join(map(escape, names))}</details>")
    return "".join(pieces)
