"""A result of the two-zone grader as what nbgrader reads and shows: outputs of a part's cell, and a summary.

Whatever came from a submission is printable ASCII when it arrives here (wire.clean), and is escaped for HTML.
"""

from html import escape

import nbformat.v4

from grading.grader.inside.text import clean
from grading.grader.states import ADVICE, PASSED
from nanolm.hint import mistakes

HEAD = ("test", "points", "what happened", "next")
# Each output brings its look along: it is shown in nbgrader's pages, in ours, and in JupyterLab.
CELL = "text-align:left;vertical-align:top;padding:2px 8px"
COLOUR = {PASSED: "#00664b", ADVICE: "#005a8c"}
OTHER = "#a34700"


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
        f"<p>Your code earned <b>{result['points'] - added} points</b> and <b>{added} points of bonus</b>. "
        "The written answers are added when they have been read.</p>"
    ]
    files = [sentence for sentence in result["files"].values() if sentence != "taken in"]
    sentences = [*result["notes"], *files, *notes]
    if sentences:
        items = "".join(f"<li>{escape(clean(sentence))}</li>" for sentence in sentences)
        lines.append(f"<p>About what you handed in:</p><ul>{items}</ul>")
    return f'<div class="week-summary">{"".join(lines)}</div>'


def _rows(tests):
    """(name, points, state, symptom, question, command) for each test, as plain ASCII."""
    for test in tests:
        known = mistakes().get(test["mistake"] or "", {})
        passed = test["state"] == PASSED
        hint = f"python -m nanolm hint {test['mistake'] or test['name']}"
        symptom = "" if passed else test["message"] or test["state"]
        command = "" if passed or test["state"] == ADVICE else hint
        words = (test["name"], f"{test['earned']} of {test['points']}", test["state"], symptom, "", command)
        if known:
            words = (*words[:3], f"{symptom}: {known['symptom']}" if known["symptom"] != symptom else symptom,
                     known["cause"], command)  # fmt: skip
        yield tuple(map(clean, words))


def _plain(title, tests):
    lines = [title]
    for name, points, state, symptom, question, command in _rows(tests):
        lines.append(f"  {points:<8} {state:<12} {name}")
        lines += [f"{'':>24}{word}" for word in (symptom, question, command) if word]
    return "\n".join(lines)


def _html(title, tests):
    head = "".join(f'<th style="{CELL}">{name}</th>' for name in HEAD)
    rows = []
    for name, points, state, symptom, question, command in _rows(tests):
        colour = COLOUR.get(state, OTHER)
        what = f'<b style="color:{colour}">{escape(state)}</b>'
        what += "".join(f"<br>{escape(word)}" for word in (symptom, question) if word)
        after = f"<code>{escape(command)}</code>" if command else ""
        cells = (f"<code>{escape(name)}</code>", escape(points), what, after)
        rows.append("<tr>" + "".join(f'<td style="{CELL}">{cell}</td>' for cell in cells) + "</tr>")
    return f'<p><b>{escape(title)}</b></p><table class="week-part"><tr>{head}</tr>{"".join(rows)}</table>'
