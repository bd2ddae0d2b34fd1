"""How the week's tests are run and reported.

The implementation under test comes from the switch (NANOLM_IMPL). A test asks it through the
fixture `student` and ends in one of five states: passed, failed, not started (the code that it
asks is still a stub), waiting (a part that this one is made of is not done or not right yet) or
advice (right code that keeps, copies or repeats more than it need: no failure, and no points lost).
"""

import json
import reprlib
from pathlib import Path

import pytest
import torch

import draw
import expect
import naming
import parts
from judge import PROBLEMS, Judge
from nanolm import clock, hint, impl
from nanolm.subject import NotStarted, StudentError, Subject, seed_student_code

SHORT = reprlib.Repr()
SHORT.maxlist = SHORT.maxtuple = SHORT.maxdict = 40
SHORT.maxstring = SHORT.maxother = 200


def pytest_addoption(parser):
    group = parser.getgroup("nanolm")
    group.addoption("--report", metavar="PATH", help="write every test's state and message to this JSON file")
    group.addoption("--threads", type=int, default=1, help="torch's threads; the tensors are tiny, so 1 is fastest")
    group.addoption("--advice-points", type=int, default=0, metavar="N", help="bonus points of each question of advice")
    group.addoption("--draw-seed", type=int, default=0, help="shift every random input of the tests")


def pytest_configure(config):
    torch.set_num_threads(config.getoption("--threads"))
    if not hasattr(config, "new_subject"):  # else a plugin has brought the implementation and its Subject
        config.implementation = _load(config.args)
        config.new_subject = lambda: Subject(config.implementation)
    config.begin, config.entry_of = lambda seed: _begin(config, seed), entry_of
    config.begin(config.getoption("--draw-seed"))


def _begin(config, seed):
    """Start a run of the tests, with nothing known yet. A grader begins one for each submission."""
    draw.BASE_SEED = seed
    config.judge = Judge(config.new_subject)
    config.naming = naming.Naming(known=seed == 0)  # other inputs have other fingerprints
    config.states = {}
    config.rows = []  # of tests/test_timing_cuda.py


def pytest_report_header(config):
    return _implementation_line(config)


@pytest.fixture
def student(request):
    """The implementation under test, to be asked (see nanolm/subject.py)."""
    seed_student_code()
    return request.config.new_subject()


def pytest_collection_modifyitems(config, items):
    mine = [item for item in items if item.path.parent == Path(__file__).parent]
    mine.sort(key=lambda item: parts.FILES.index(item.path.name))  # the order of the week; stable within a file
    items[:] = mine + [item for item in items if item not in mine]
    for item in mine:
        item.part = parts.part_of_test(item.originalname)


def _load(arguments):
    try:
        return impl.load().check(_modules_asked(arguments))
    except impl.ImplementationError as error:
        raise pytest.UsageError(str(error)) from None


def _modules_asked(arguments):
    """The files of the implementation that these test files ask; all of them where a folder is named."""
    names = {Path(argument.split("::")[0]).name for argument in arguments}
    asked = names & set(parts.FILES) if names <= set(parts.FILES) else parts.ASKS
    return [module for module in impl.CONTRACT if any(module in parts.ASKS.get(name, ()) for name in asked)]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    if call.when != "call" or not hasattr(item, "part"):
        return (yield)
    error = call.excinfo.value if call.excinfo else None
    entry = entry_of(item, item.funcargs["student"], error)
    if "symptom" in entry or isinstance(error, NotStarted):
        text = _failure_text(item, entry)
        item.repr_failure = lambda excinfo: text  # instead of a traceback, which is slow to make and helps nobody
    report = yield
    report.nanolm_state, report.nanolm_message = entry["outcome"], entry["message"]
    if entry["outcome"] == "advice":
        report.outcome = "passed"  # for pytest: its exit code says whether the code is right
    item.config.states[item.nodeid] = entry
    return report


def entry_of(item, student, error):
    """What is known of a test that has asked `student` and ended with `error`, or None where it has passed."""
    state, message = item.config.judge.state(item.function, student.asked, error)
    fingerprint = naming.fingerprint(student.transcript) if state == "failed" else None
    if fingerprint is not None:
        item.config.naming.note(item.originalname, fingerprint)
    entry = {
        "id": item.nodeid,
        "name": item.originalname,
        "part": item.part,
        "points": _points(item),
        "outcome": state,
        "message": message,
        **(_details(error) if isinstance(error, PROBLEMS) else {}),
        "measured": [difference / tolerance for difference, tolerance in expect.MEASURED],
        "fingerprint": [] if fingerprint is None else fingerprint.tolist(),
    }
    expect.MEASURED.clear()
    return entry


def pytest_report_teststatus(report):
    state = getattr(report, "nanolm_state", None)
    if state == "not started":
        return state, "n", "NOT STARTED"
    if state == "waiting":
        return state, "w", report.nanolm_message.split(":")[0].upper()
    if state == "advice":
        return state, "a", "ADVICE"
    return None


def pytest_terminal_summary(terminalreporter, config):
    for state in ("not started", "waiting"):
        messages = {report.nanolm_message: None for report in terminalreporter.stats.get(state, ())}
        if messages:
            terminalreporter.section(state)
        for message in messages:
            terminalreporter.line(message)
    advice = terminalreporter.stats.get("advice", ())
    if advice:
        terminalreporter.section("advice: right, and it could be faster or smaller")
    for report in advice:
        terminalreporter.line(f"{report.location[2]}\n{report.longreprtext}")
    if config.rows:
        terminalreporter.section(f"time on {clock.machine('cuda')}")
    for line in clock.table(config.rows) if config.rows else ():
        terminalreporter.line(line)
    lines = [line for part in parts.PARTS for line in naming.sentences(config.naming, part)]
    if lines:
        terminalreporter.section("what it may be")
    for line in lines:
        terminalreporter.line(line)
    if config.get_verbosity() < 0:  # -q prints no header
        terminalreporter.line(_implementation_line(config))


def pytest_sessionfinish(session):
    path = session.config.getoption("--report")
    if path:
        tests = list(session.config.states.values())
        names = session.config.naming.explanations()
        for test in tests:
            test["mistake"] = names.get(test["name"])
        found = {"implementation": session.config.implementation.name, "tests": tests}
        Path(path).write_text(json.dumps(found, indent=1), encoding="utf-8")


def _implementation_line(config):
    implementation = config.implementation
    return f"implementation under test: {implementation.name} ({implementation.folder})"


def _points(item):
    if item.part in parts.ADVICE:
        return item.config.getoption("--advice-points")
    marker = item.get_closest_marker("points")
    return marker.args[0] if marker else 0


def _details(error):
    """symptom, expected, got and cause of one problem, as text."""
    if isinstance(error, expect.Mistake):
        found = {"symptom": error.symptom, "expected": error.expected, "got": error.got, "cause": error.cause}
    elif isinstance(error, StudentError):
        where = f" at {error.place}" if error.place else ""
        cause = "What does that line do with this test's input?"
        found = {"symptom": f"your code raised {error.kind}{where}", "got": error.message, "cause": cause}
    else:
        found = {"symptom": str(error)}
    return {name: _ascii(_said(value)) for name, value in found.items() if value is not None}


def _said(value):
    """A value as text; of a list that code may have made of any length, the beginning."""
    return SHORT.repr(value) if type(value) in (list, tuple, dict) else str(value)


def _failure_text(item, entry):
    labels = ("expected", "got", "cause")
    lines = [entry.get("symptom", "")]
    lines += [f"{label:>12}  {entry[label]}" for label in labels if label in entry]
    if command := hint.command(item.originalname):
        lines.append(f"{'next':>12}  {command}")
    return "\n".join(lines)


def _ascii(text):
    return text.encode("ascii", "backslashreplace").decode("ascii")
