"""What a run found, told in few lines: each cause once and in full, the other tests that it turns red by name.

An entry is what conftest.entry_of knows of one test.
"""

import re
import textwrap
from dataclasses import dataclass, field

from _pytest.terminal import TerminalReporter

from machinery import naming, parts
from nanolm.student import hint

WIDTH = 100
IN_FULL = 2  # blocks of one part that nothing joins; the others are named
ONE_A_LINE = 3  # further tests of a block; more are told in a list
LISTED = 5
LABELS = {"line": "line", "tensors": "with", "expected": "expected", "got": "got", "axis": "axis", "cause": "cause"}


@dataclass
class Group:
    """Red tests with one cause, the most telling first."""

    entries: list = field(default_factory=list)
    mistake: str = ""  # its id, where it is a known one
    crash: bool = False

    @property
    def first(self):
        """The test that is there for the mistake, else the first in the week's order."""
        named = hint.mistakes()[self.mistake]["test"] if self.mistake else None
        return next((entry for entry in self.entries if entry["name"] == named), self.entries[0])

    @property
    def others(self):
        return [entry for entry in self.entries if entry is not self.first]


def grouped(entries, names):
    """Groups of the red entries, in the order of the week. `names` is test name -> id of the mistake behind it."""
    found = {}
    for entry in entries:
        mistake = names.get(entry["name"], "")
        key = (entry["part"], mistake) if mistake else _cause_of(entry)
        group = found.setdefault(key, Group(mistake=mistake, crash="raised" in entry))
        group.entries.append(entry)
    return list(found.values())


def _cause_of(entry):
    """What two tests have in common that show the same fault."""
    if "raised" in entry:  # wherever it is met
        return "raised", entry["symptom"], re.sub(r"\d+", "#", entry.get("got", ""))
    if "got" in entry or "expected" in entry:
        return entry["part"], entry["symptom"], entry.get("expected"), entry.get("got")
    return "said", entry.get("symptom", entry["message"])


def blocks(entries, names):
    """Lines for all red entries: a block for each cause, at most IN_FULL of a part where no cause is known."""
    shown = {}
    for group in grouped(entries, names):
        part = group.first["part"]
        joined = group.mistake or group.crash or len(group.entries) > 1
        shown[part] = shown.get(part, 0) + (not joined)
        yield f"FAILED {group.first['id']}"
        if joined or shown[part] <= IN_FULL:
            yield from (f"    {line}" for line in details(group.first, known=bool(group.mistake)))
        yield from _others(group)


def _others(group):
    """The other tests of a group, a line each; many, or all that one exception ended, in one sentence."""
    others, shown = group.others, 0 if group.crash else ONE_A_LINE
    if len(others) > shown > 0:
        shown = ONE_A_LINE - 1
    for entry in others[:shown]:
        yield f"FAILED {entry['id']}"
    if rest := others[shown:]:
        names = ", ".join(entry["name"].removeprefix("test_") for entry in rest[:LISTED])
        more = f" and {len(rest) - LISTED} more" if len(rest) > LISTED else ""
        same = f"the same in {len(group.entries)} tests, also" if group.crash else f"FAILED {len(rest)} more:"
        indents = {"initial_indent": "    " * group.crash, "subsequent_indent": "    "}
        yield from textwrap.wrap(f"{same} {names}{more}", WIDTH, **indents)


def details(entry, known=False):
    """A red test in full; where the mistake is known, its own cause is said instead of the test's."""
    yield entry.get("symptom", entry["message"])
    for name, label in LABELS.items():
        if name in entry and not (known and name == "cause"):
            yield f"{label:>8}  {entry[name]}"
    if not known and "raised" not in entry and (command := hint.command(entry["name"])):
        yield f"{'next':>8}  {command}"


def one_by_one(entries, held):
    """Lines for every test with its points, for a page without pytest's own; at the end what it may be."""
    names = held.explanations()
    groups = grouped([entry for entry in entries if entry["outcome"] == "failed"], names)
    group_of = {entry["id"]: group for group in groups for entry in group.entries}
    for entry in entries:
        state = "FAILED" if entry["outcome"] == "failed" else entry["outcome"]
        group = group_of.get(entry["id"])
        later = group is not None and entry is not group.first
        yield f"  {state:<12}{entry['points']:>2}  {entry['name']}" + (f", as {group.first['name']}" if later else "")
        if group is not None and not later:
            yield from (f"{'':>18}{line}" for line in details(entry, known=bool(group.mistake)))
        elif group is None and entry["outcome"] in ("waiting", "advice"):
            yield f"{'':>18}{entry['message']}"
    yield from what_it_may_be(held)


class Reporter(TerminalReporter):
    """pytest's own, with one paragraph of progress and one of failures. --tb or -r give pytest's full ones."""

    def pytest_report_header(self, config):
        return super().pytest_report_header(config) if self.verbosity > 0 else []

    @property
    def showfspath(self):
        return self.verbosity > 0 if self._showfspath is None else self._showfspath

    @showfspath.setter
    def showfspath(self, value):
        self._showfspath = value

    def summary_failures(self):
        if self.config.option.tbstyle != "auto":
            return super().summary_failures()
        failed = self.getreports("failed")
        if failed:
            self.write_sep("=", "FAILURES")
        entries = [report.nanolm for report in failed if hasattr(report, "nanolm")]
        for line in blocks(entries, read(self.stats, self.config.naming.compares).explanations()):
            self.write_line(line)
        for report in failed:
            if not hasattr(report, "nanolm"):  # not a test of the week
                self.write_sep("_", self._getfailureheadline(report), red=True, bold=True)
                self._outrep_summary(report)

    def short_test_summary(self):
        if self.config.option.reportchars != "fE" or self.config.option.tbstyle != "auto":
            super().short_test_summary()


def install(config):
    """Put the Reporter in the place of pytest's own, where that one is in use."""
    old = config.pluginmanager.getplugin("terminalreporter")
    if type(old) is TerminalReporter:
        config.pluginmanager.unregister(old)
        config.pluginmanager.register(Reporter(config), "terminalreporter")


def read(stats, compares):
    """The Naming of a run, from pytest's reports of its tests, wherever they ran."""
    held = naming.Naming(compares)
    for report in (report for reports in stats.values() for report in reports):
        if hasattr(report, "nanolm"):
            held.note_entry(report.nanolm)
    return held


def not_started(messages, red):
    """What to say of exercises that are not started; one line of them where something is red."""
    messages = list(messages)
    if not red or len(messages) < 3:
        return messages
    return [messages[0], f"and {len(messages) - 1} more exercises are not started"]


def waiting(messages):
    """Counted lines of what tests wait for."""
    for message in dict.fromkeys(messages):
        count = messages.count(message)
        yield f"{message} ({count} test{'s' if count > 1 else ''})"


def advice(entries, red):
    """What right code is told; one line each where something is red."""
    for entry in entries:
        if red:
            yield f"advice: {entry.get('symptom', entry['message'])} ({entry['name']})"
        else:
            yield entry["name"]
            yield from details(entry)


def what_it_may_be(naming_of_run):
    """The names of the mistakes, part by part."""
    return [line for part in parts.PARTS for line in naming.sentences(naming_of_run, part)]
