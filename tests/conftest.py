"""How the week's tests are run and reported.

The implementation under test comes from the switch (NANOLM_IMPL). A test asks it through the
fixture `student` and ends in one of five states: passed, failed, not started (the code that it
asks is still a stub), waiting (a part that this one is made of is not done or not right yet) or
advice (right code that keeps, copies or repeats more than it need: no failure, and no points lost).
"""

import argparse
import json
import reprlib
from pathlib import Path

import pytest
import torch

from machinery import draw, expect, naming, parts, telling
from machinery.judge import PROBLEMS, Judge
from nanolm import impl
from nanolm.asking import clock
from nanolm.asking.subject import Subject, seed_student_code
from nanolm.errors import StudentError
from nanolm.importer import PROVIDED

SHORT = reprlib.Repr()
SHORT.maxlist = SHORT.maxtuple = SHORT.maxdict = 40
SHORT.maxstring = SHORT.maxother = 200


def _count(text):
    """A number of threads."""
    if not text.isdecimal() or not 1 <= int(text) <= 1024:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to 1024")
    return int(text)


def _new_file(text):
    """A file that can be written."""
    path = Path(text).expanduser()
    if path.is_dir():
        raise argparse.ArgumentTypeError(f"{text} is a folder: name a file in it")
    if not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {path.parent}: make it first")
    return path


def pytest_addoption(parser):
    group = parser.getgroup("nanolm")
    about = "write every test's state and message to this JSON file"
    group.addoption("--report", metavar="PATH", type=_new_file, help=about)
    group.addoption("--threads", type=_count, default=1, help="torch's threads; the tensors are tiny, so 1 is fastest")
    group.addoption("--advice-points", type=int, default=0, metavar="N", help="bonus points of each question of advice")
    group.addoption("--draw-seed", type=int, default=0, help="shift every random input of the tests")


@pytest.hookimpl(trylast=True)  # when pytest's own reporter is there
def pytest_configure(config):
    telling.install(config)
    torch.set_num_threads(config.getoption("--threads"))
    config.pluginmanager.set_blocked("logging-plugin")  # nobody logs here, and it costs a tenth of the run
    if not hasattr(config, "new_subject"):  # else a plugin has brought the implementation and its Subject
        config.implementation = _load()
        config.new_subject = lambda: Subject(config.implementation)
    config.begin, config.entry_of = lambda seed: _begin(config, seed), entry_of
    config.begin(config.getoption("--draw-seed"))


def _begin(config, seed):
    """Start a run of the tests, with nothing known yet. A grader begins one for each submission."""
    draw.BASE_SEED = seed
    config.judge = Judge(config.new_subject)
    config.naming = naming.Naming(seed == 0)  # other inputs have other fingerprints
    config.states = {}
    config.rows = []  # of tests/test_timing_cuda.py


def pytest_report_header(config):
    return _implementation_lines(config)


@pytest.fixture
def student(request):
    """The implementation under test, to be asked (see nanolm/asking/subject.py)."""
    seed_student_code()
    return request.config.new_subject()


def pytest_collection_modifyitems(config, items):
    mine = [item for item in items if item.path.parent == Path(__file__).parent]
    mine.sort(key=lambda item: parts.FILES.index(item.path.name))  # the order of the week; stable within a file
    items[:] = mine + [item for item in items if item not in mine]
    for item in mine:
        item.part = parts.part_of_test(item.originalname)


def _load():
    """The implementation under test. What is wrong in one of its files is said by the tests that ask this file."""
    try:
        return impl.load()
    except impl.ImplementationError as error:
        raise pytest.UsageError(str(error)) from None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    if call.when != "call" or not hasattr(item, "part"):
        return (yield)
    error = call.excinfo.value if call.excinfo else None
    entry = entry_of(item, item.funcargs["student"], error)
    if "symptom" in entry or entry["outcome"] in ("not started", "waiting"):
        text = _failure_text(item, entry)
        item.repr_failure = lambda excinfo: text  # instead of a traceback, which is slow to make and helps nobody
    report = yield
    report.nanolm = entry
    if entry["outcome"] == "advice":
        report.outcome = "passed"  # for pytest: its exit code says whether the code is right
    item.config.states[item.nodeid] = entry
    return report


def entry_of(item, student, error):
    """What is known of a test that has asked `student` and ended with `error`, or None where it has passed."""
    error = error and expect.usable(error, student.asked, student.transcript)
    state, message = item.config.judge.state(item.function, student.asked, error)
    fingerprint = naming.fingerprint(student.transcript) if state == "failed" else None
    entry = {
        "id": item.nodeid,
        "name": item.originalname,
        "part": item.part,
        "asked": list(student.asked),
        "points": _points(item),
        "outcome": state,
        "message": message,
        **(_details(error) if isinstance(error, PROBLEMS) else {}),
        "measured": [difference / tolerance for difference, tolerance in expect.MEASURED],
        "fingerprint": [] if fingerprint is None else fingerprint.tolist(),
    }
    expect.MEASURED.clear()
    item.config.naming.note_entry(entry)
    return entry


def pytest_report_teststatus(report):
    entry = getattr(report, "nanolm", {})
    state = entry.get("outcome")
    if state == "not started":
        return state, "n", "NOT STARTED"
    if state == "waiting":
        return state, "w", entry["message"].split(":")[0].upper()
    if state == "advice":
        return state, "a", "ADVICE"
    return None


def pytest_terminal_summary(terminalreporter, config):
    red = [report.nanolm for report in terminalreporter.stats.get("failed", ()) if hasattr(report, "nanolm")]
    messages = {
        state: [report.nanolm["message"] for report in terminalreporter.stats.get(state, ())]
        for state in ("not started", "waiting")
    }
    if messages["not started"] and not red:
        terminalreporter.section("not started")
    lines = [*telling.not_started(dict.fromkeys(messages["not started"]), red), *telling.waiting(messages["waiting"])]
    for line in lines:
        terminalreporter.line(line)
    advice = [report.nanolm for report in terminalreporter.stats.get("advice", ())]
    if advice and not red:
        terminalreporter.section("advice: right, and it could be faster or smaller")
    for line in telling.advice(advice, red):
        terminalreporter.line(line)
    if config.rows:
        terminalreporter.section(f"time on {clock.machine('cuda')}")
    for line in clock.table(config.rows) if config.rows else ():
        terminalreporter.line(line)
    if config.get_verbosity() < 0:  # -q prints no header
        for line in _implementation_lines(config):
            terminalreporter.line(line)
    if lines := telling.what_it_may_be(telling.read(terminalreporter.stats, config.naming.compares)):
        terminalreporter.section("what it may be")
    for line in lines:
        terminalreporter.line(line)


def pytest_sessionfinish(session):
    path = session.config.getoption("--report")
    if path:
        tests = list(session.config.states.values())
        names = session.config.naming.explanations()
        for test in tests:
            test["mistake"] = names.get(test["name"])
        found = {"implementation": session.config.implementation.name, "tests": tests}
        try:
            path.write_text(json.dumps(found, indent=1), encoding="utf-8")
        except OSError as error:
            pytest.exit(f"the report can't be written to {path} ({error.strerror}): name another file", 4)


def _implementation_lines(config):
    implementation = config.implementation
    there = f"only {', '.join(PROVIDED)} and Python's own library are"
    return [
        f"implementation under test: {implementation.name} ({impl.printable(str(implementation.folder))})",
        *(
            f"{file} imports {package}, which is not there where code is graded: {there}"
            for package, file in implementation.not_provided().items()
        ),
    ]


def _points(item):
    if item.part in parts.ADVICE:
        return item.config.getoption("--advice-points")
    marker = item.get_closest_marker("points")
    return marker.args[0] if marker else 0


def _details(error):
    """symptom, expected, got, cause and what else there is to say of one problem, as text."""
    if isinstance(error, expect.Mistake):
        found = {"symptom": error.symptom, "expected": error.expected, "got": error.got, "cause": error.cause}
    elif isinstance(error, StudentError):
        where = f" at {error.place}" if error.place else ""
        found = {"symptom": f"your code raised {error.kind}{where}", "got": error.message, "raised": error.kind}
        found |= {name: getattr(error, name) or None for name in ("line", "tensors", "axis")}
    else:
        found = {"symptom": str(error)}
    told = {name: _readable(_said(value)) for name, value in found.items() if value is not None}
    if isinstance(error, expect.Mistake) and error.got == "None":
        told["raised"] = "None"  # nothing came out: as much as an exception says
    digits = getattr(error, "digits", None)
    return told if digits is None else told | {"digits": digits}


def _said(value):
    """A value as text; of a list that code may have made of any length, the beginning; numbers in one form."""
    if type(value) is int:
        return f"{value:,}"
    return SHORT.repr(value) if type(value) in (list, tuple, dict) else str(value)


def _failure_text(item, entry):
    return "\n".join(telling.details(entry))


def _readable(text):
    """A student's text as it is where a terminal can show it: letters of any language, no control characters."""
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)
