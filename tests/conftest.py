"""How the week's tests are run and reported.

The implementation under test comes from the switch (NANOLM_IMPL). A test asks it through the
fixture `student` and ends in one of four states: passed, failed, not started (the code that it
asks is still a stub) or waiting (a part that this one is made of is not done or not right yet).
"""

import json
from pathlib import Path

import draw
import expect
import parts
import pytest
import torch
from nanolm import impl
from nanolm.subject import ContractError, NotStarted, StudentError, Subject

STUDENT_PROBLEMS = (expect.Mistake, StudentError, ContractError, impl.ImplementationError)


def pytest_addoption(parser):
    group = parser.getgroup("nanolm")
    group.addoption("--report", metavar="PATH", help="write every test's state and message to this JSON file")
    group.addoption("--threads", type=int, default=1, help="torch's threads; the tensors are tiny, so 1 is fastest")
    group.addoption("--draw-seed", type=int, default=0, help="shift every random input of the tests")


def pytest_configure(config):
    config.addinivalue_line("markers", "points(n): the marks that this test gives")
    torch.set_num_threads(config.getoption("--threads"))
    draw.BASE_SEED = config.getoption("--draw-seed")
    try:
        config.implementation = impl.load()
    except impl.ImplementationError as error:
        raise pytest.UsageError(str(error)) from None
    config.soundness = Soundness(config.implementation)
    config.states = {}


def pytest_report_header(config):
    return _implementation_line(config)


@pytest.fixture
def student(request):
    """The implementation under test, to be asked (see nanolm/subject.py)."""
    return Subject(request.config.implementation)


def pytest_collection_modifyitems(config, items):
    mine = [item for item in items if item.path.parent == Path(__file__).parent]
    mine.sort(key=lambda item: parts.FILES.index(item.path.name))  # the order of the week; stable within a file
    items[:] = mine + [item for item in items if item not in mine]
    needed = {module: None for item in mine for module in parts.ASKS.get(item.path.name, ())}
    try:
        config.implementation.check(needed)
    except impl.ImplementationError as error:
        raise pytest.UsageError(str(error)) from None
    for item in mine:
        item.part = parts.part_of_test(item.originalname)


class Soundness:
    """Whether a part's own tests pass: from the tests that ran, else by running them when asked."""

    def __init__(self, implementation):
        self.implementation = implementation
        self.seen = {}  # part -> False as soon as one of its tests is not passed

    def note(self, part, passed):
        self.seen[part] = self.seen.get(part, True) and passed

    def first_unsound(self, part):
        """The first part, of those that `part` is made of, whose own tests are not all green."""
        for needed in parts.MADE_OF.get(part, ()):
            if needed not in self.seen:
                self.note(needed, self._passes(needed))
            if not self.seen[needed]:
                return needed
        return None

    def _passes(self, part):
        for file in parts.FILES:
            module = pytest.importorskip(Path(file).stem)
            for name, test in vars(module).items():
                if name.startswith("test_") and parts.part_of_test(name) == part:
                    try:
                        test(Subject(self.implementation))
                    except (*STUDENT_PROBLEMS, NotStarted):
                        return False
        return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if not hasattr(item, "part") or call.when != "call" or report.skipped:
        return report
    soundness = item.config.soundness
    error = call.excinfo.value if call.excinfo else None
    state, message, details = "passed", "", {}
    if isinstance(error, NotStarted):
        missing = parts.part_of_exercise(error.name)
        state = "not started" if missing in (item.part, "objectives") else "waiting"
        message = str(error) if state == "not started" else f"waiting for {missing}: {error.name} is not started"
    elif isinstance(error, STUDENT_PROBLEMS):
        unsound = soundness.first_unsound(item.part)
        state = "waiting" if unsound else "failed"
        details = _details(error)
        message = f"waiting for {unsound}: its own tests come first" if unsound else details["symptom"]
        report.longrepr = _failure_text(item, details)
    elif error is not None:
        state, message = "failed", f"the test itself broke: {type(error).__name__}: {error}"
    soundness.note(item.part, state == "passed")
    report.nanolm_state, report.nanolm_message = state, message
    item.config.states[item.nodeid] = {
        "id": item.nodeid,
        "name": item.originalname,
        "part": item.part,
        "points": _points(item),
        "outcome": state,
        "message": message,
        **details,
        "mistake": None,
    }
    return report


def pytest_report_teststatus(report):
    state = getattr(report, "nanolm_state", None)
    if state == "not started":
        return state, "n", "NOT STARTED"
    if state == "waiting":
        return state, "w", report.nanolm_message.split(":")[0].upper()
    return None


def pytest_terminal_summary(terminalreporter, config):
    for state in ("not started", "waiting"):
        messages = {report.nanolm_message: None for report in terminalreporter.stats.get(state, ())}
        if messages:
            terminalreporter.section(state)
        for message in messages:
            terminalreporter.line(message)
    if config.get_verbosity() < 0:  # -q prints no header
        terminalreporter.line(_implementation_line(config))


def pytest_sessionfinish(session):
    path = session.config.getoption("--report")
    if path:
        found = {"implementation": session.config.implementation.name, "tests": list(session.config.states.values())}
        Path(path).write_text(json.dumps(found, indent=1), encoding="utf-8")


def _implementation_line(config):
    implementation = config.implementation
    return f"implementation under test: {implementation.name} ({implementation.folder})"


def _points(item):
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
    return {name: _ascii(str(value)) for name, value in found.items() if value is not None}


def _failure_text(item, details):
    labels = {"symptom": "wrong", "expected": "expected", "got": "got", "cause": "ask"}
    lines = [f"{label:>9}  {details[name]}" for name, label in labels.items() if name in details]
    lines.append(f"{'next':>9}  python -m nanolm hint {item.originalname}")
    return "\n".join(lines)


def _ascii(text):
    return text.encode("ascii", "backslashreplace").decode("ascii")
