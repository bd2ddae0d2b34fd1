"""The intake desk: a source in, one attempt for each student out, and a row for each problem.

A source is what a platform gave (a folder or a .zip, of files, folders or archives); its layout is found
out from the names of its top entries.
"""

import csv
from dataclasses import dataclass, field
from datetime import UTC

from grading.collect import ASSIGNMENT, CODE
from grading.collect.attempt import Attempt
from grading.collect.names import label_of, week_file
from grading.collect.parcels import Unreadable, inside, is_archive, items_of
from grading.collect.problems import NOBODY, Problem
from grading.collect.roster import Unknown
from grading.times import EXAMPLE, TIMESTAMP, TimeError, read_time, show_time

WRAPPERS = 3  # folders around everything, as a platform or a person may put them
STAMPED = ("folder", "exchange")  # layouts in which timestamp.txt is not the student's own


class SourceError(Exception):
    """The source or the list of times can't be used; the message is one sentence."""


@dataclass
class Desk:
    """One intake: whose names are known (`roster`), in which zone times are, and which are given from outside."""

    roster: object
    zone: object
    times: dict = field(default_factory=dict)  # student -> moment
    problems: list = field(default_factory=list)

    def attempts(self, source):
        """Yield the attempt that counts, sorted, for each student who handed in something that can be taken."""
        claims = {}
        for attempt in self._claims(source):
            claims.setdefault(attempt.student, []).append(attempt)
        for student in sorted(claims):
            attempt = self._latest(student, claims.pop(student))
            if attempt is None:
                continue
            sound = attempt.sort()
            self.problems += attempt.problems
            if sound:
                yield attempt
            else:
                self._say(student, f"none of the week's files is in {attempt.source}", "ask for them", lost=True)

    def nothing_from(self, students):
        """Rows for those who handed in nothing."""
        for student in sorted(students):
            self._say(student, "handed in nothing", "nothing, or remind them")

    def _say(self, who, what, do, lost=False):
        self.problems.append(Problem(who, what, do, lost))

    def _claims(self, source):
        """The attempts of a source, as its top entries' names tell them apart."""
        try:
            groups = self._unwrapped(_by_top(items_of(source)))
        except Unreadable as error:
            raise SourceError(str(error)) from None
        if not groups:
            raise SourceError(f"{source} is empty: name the folder or .zip file that the platform gave you.")
        flat = {}  # (student, name on the platform) -> the one attempt whose files lie side by side
        for (top, is_file), items in groups.items():
            label = label_of(top, is_file)
            if label.kind == "online text" or (label.kind == "blackboard" and not label.rest):
                continue  # the platform's own page about a submission
            if items[0].trouble and is_file:  # a link or a pipe in place of a folder, or a folder that is locked
                what, _, do = items[0].trouble.rstrip(".").rpartition(": ")
                self._say(top, what, do, lost=True)
                continue
            if label.kind == "file" and not is_archive(top):
                self._say(NOBODY, f"{top}: its name says no student", "put it into a folder named after the student")
                continue
            try:
                student = self.roster.find(label)
            except Unknown as error:
                what, _, do = str(error).partition(": ")
                self._say(top, what, do, lost=True)
                continue
            time = self.time_of(student, label, items)
            if label.kind in ("canvas", "blackboard") or (label.kind == "moodle" and is_file):
                attempt = flat.setdefault((student, label.name, label.lms, time), Attempt(student, top, [], time, True))
                attempt.items += [item.below((label.rest,)) for item in items]
                late = "the platform marks it as late but gives no time"
                if label.late and time is None and all(problem.what != late for problem in attempt.problems):
                    attempt.say(late, f"give it by --times as {EXAMPLE}, or write {TIMESTAMP}")
            else:
                inner = [item.below(item.parts[1:] or item.parts) for item in items]
                yield Attempt(student, top, inner, time, label.kind == "moodle")
        yield from flat.values()

    def _unwrapped(self, groups, depth=WRAPPERS):
        """The groups below folders or archives that hold everything and name nobody."""
        while depth and len(groups) == 1:
            ((top, is_file), items), depth = *groups.items(), depth - 1
            label = label_of(top, is_file)
            if label.kind not in ("folder", "file") or self.roster.is_known(label):
                break
            if is_file:
                items = inside(items[0]) if is_archive(top) else items
            inner = [item.below(item.parts[1:]) for item in items if len(item.parts) > 1]
            if not inner or any(_is_submission(item) for item in inner):
                break
            groups = _by_top(inner)
        return groups

    def time_of(self, student, label, items):
        """The moment of a hand-in, from outside, from the platform's name or from timestamp.txt; else None."""
        if student in self.times:
            return self.times[student]
        try:
            if label.time:
                return read_time(label.time, self.zone)
            if label.kind in STAMPED:
                stamps = [item for item in items if item.name == TIMESTAMP and 1 < len(item.parts) <= 3]
                if stamps:
                    return read_time(stamps[0].read(1000).decode("utf-8-sig", "replace"), UTC)
        except (TimeError, Unreadable) as error:
            what, _, do = str(error).rstrip(".").rpartition(": ")
            self._say(student, what, do)
        return None

    def _latest(self, student, attempts):
        """The attempt that counts: the latest. None, and a row, where nothing says which one that is."""
        if len(attempts) == 1:
            return attempts[0]
        names = ", ".join(attempt.source for attempt in attempts)
        times = [attempt.time for attempt in attempts]
        if None in times or times.count(max(times)) > 1:
            self._say(student, f"{len(attempts)} entries claim to be theirs ({names})", "keep one", lost=True)
            return None
        latest = max(attempts, key=lambda attempt: attempt.time)
        when = show_time(latest.time, self.zone)
        what = f"{len(attempts)} attempts ({names})"
        self._say(student, what, f"nothing: the latest counts, {latest.source} ({when})")
        return latest


def without_time(students):
    """One row for all whose time isn't known: nbgrader takes them to be on time, and nobody should have to guess."""
    names = sorted(students)
    if names:
        who = names[0] if len(names) == 1 else f"{len(names)} students"
        do = f"give it in a CSV file of times, or write it into submitted/STUDENT/{ASSIGNMENT}/{TIMESTAMP} as {EXAMPLE}"
        yield Problem(who, f"no time of hand-in, counted as on time: {', '.join(names)}", do)


def _by_top(items):
    """{(top entry's name, whether it is a file): its items}."""
    groups = {}
    for item in items:
        groups.setdefault((item.parts[0], len(item.parts) == 1), []).append(item)
    return groups


def _is_submission(item):
    """Whether an item is what lies at the top of one student's work."""
    top = item.parts[0].casefold()
    return top in (ASSIGNMENT, CODE) or (len(item.parts) == 1 and week_file(item.name)[0] is not None)


def read_times(path, roster, zone):
    """({student: moment}, rows of what can't be understood) of a CSV file with the columns student and time."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            rows = list(csv.DictReader(stream))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise SourceError(f"{path} can't be read as CSV ({error}): save it as CSV in UTF-8.") from None
    times, problems = {}, []
    for line, row in enumerate(rows, 2):
        if row.get("student") is None or row.get("time") is None:
            raise SourceError(f"{path}, line {line}: the columns student and time are needed.")
        who = row["student"].strip()
        try:
            student = roster.find(label_of(who, False))
            times[student] = None  # a bad time is no leave to take one from elsewhere
            times[student] = read_time(row["time"], zone)
        except (TimeError, Unknown) as error:
            what, _, do = str(error).rstrip(".").rpartition(": ")
            problems.append(Problem(who, f"{path.name}, line {line}: {what}", do))
    return times, problems
