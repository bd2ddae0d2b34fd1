"""The intake: a source in, one attempt for each student out, and a row for each problem.

A source is what a platform gave (a folder or a .zip, of files, folders or archives); its layout is found
out from the names of its top entries.
"""

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC

from grading.grader.untrusted import Unfit
from grading.grader.untrusted.archives import Budget
from grading.grader.untrusted.files import read_file
from grading.grader.untrusted.tables import read_table
from grading.week.collect import ASSIGNMENT, CODE
from grading.week.collect.attempt import Attempt
from grading.week.collect.items import SOURCE_DIRECTORY, Unreadable, inside, is_archive, is_other_archive, items_of
from grading.week.collect.names import Label, label_of, platform_of_name, title_of, week_file
from grading.week.collect.owners import owner_trouble
from grading.week.collect.problems import NOBODY, Problem
from grading.week.collect.roster import Unknown
from grading.week.times import EXAMPLE, STAMP_LIMIT, TIMESTAMP, TimeError, read_time, show_time

TIMES_LIMIT = 10_000_000  # bytes of a table of times
WRAPPERS = 3  # folders around everything, as a platform or a person may put them
SETTLE = "keep one of them there and collect again"
STAMPED = ("folder", "exchange")  # layouts in which timestamp.txt is not the student's own


class SourceError(Exception):
    """The source or the list of times can't be used; the message is one sentence."""


@dataclass
class Collection:
    """One intake: whose names are known (`roster`), in which zone times are, and which are given from outside."""

    roster: object
    zone: object
    times: dict = field(default_factory=dict)  # student -> moment
    problems: list = field(default_factory=list)
    ask_owners: bool = True  # of what lies in nbgrader's exchange, where anybody can make a folder of any name
    understood: str = ""  # how the source was read, in a sentence

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

    def _say(self, who, what, do, lost=False, ownerless=False):
        self.problems.append(Problem(who, what, do, lost, ownerless))

    def _claims(self, source):
        """The attempts of a source, as its top entries' names tell them apart."""
        try:
            groups = self._unwrapped(_by_top(items_of(source)))
        except Unreadable as error:
            raise SourceError(str(error)) from None
        if not groups:
            raise SourceError(f"{source} is empty: name the folder or .zip file that the platform gave you.")
        flat = {}  # (student, account, time) -> the one attempt whose files lie side by side
        unasked = 0
        for (top, is_file), label in self._labels(list(groups), source).items():
            items = groups[top, is_file]
            if label.kind == "online text" or (label.kind == "blackboard" and not label.rest):
                continue  # the platform's own page about a submission
            student = self._student(top, is_file, label, items)
            if student is None:
                continue
            if label.kind == "exchange" and self.ask_owners:
                known, trouble = owner_trouble(_folder_of(items[0]), label.name)
                unasked += not known
                if trouble:
                    self._say(label.name, f"{top} {trouble}", SETTLE, lost=True, ownerless=True)
                    continue
            time = self.time_of(student, label, items)
            if label.kind in ("canvas", "blackboard") or (label.kind == "moodle" and is_file):
                key = (student, label.account, time)
                attempt = flat.setdefault(key, Attempt(student, top, [], time, True, label.account))
                attempt.items += [item.below((label.rest,)) for item in items]
                late = "the platform marks it as late but gives no time"
                if label.late and time is None and all(problem.what != late for problem in attempt.problems):
                    attempt.say(late, f"give it by --times as {EXAMPLE}, or write {TIMESTAMP}")
            else:
                inner = [item.below(item.parts[1:] or item.parts) for item in items]
                of_exchange = label.kind == "exchange"
                yield Attempt(student, top, inner, time, label.kind == "moodle", label.account, of_exchange)
        if unasked:
            what = f"{unasked} folders tell no owner: they are yours, or lie in a .zip"
            self._say(NOBODY, what, "nothing, if each came by the submit command of the one it names")
        yield from flat.values()

    def _labels(self, tops, source):
        """{top entry: its Label}, all read as names of one platform, which most of them tell."""
        votes = Counter(platform_of_name(*top) for top in tops)
        votes[None] = sum(platform_of_name(*top) is None and self._may_be_a_student(top) for top in tops)
        first, second = (*votes.most_common(2), (None, 0))[:2]
        if first[1] == second[1] and None not in (first[0], second[0]):
            raise SourceError(
                f"{source} holds as many names of {first[0].name} as of {second[0].name}: "
                "collect what each gave from a folder of its own."
            )
        platform = first[0] if first[1] > second[1] else None
        labels = {top: label_of(*top, platform) for top in tops}
        fitting = sum(label.kind not in ("file", "folder") for label in labels.values())
        if platform:
            self.understood = f"Read as what {platform.name} gives: {fitting} of {len(tops)} names are as there."
        else:
            self.understood = f"Read as folders and files named after the students: {len(tops)} names."
        if platform and platform.kind == "blackboard":
            self._take_titles_off(labels)
        return labels

    def _take_titles_off(self, labels):
        """Blackboard's names begin with the assignment's title, which ends where the user begins."""
        tops = [top for top, label in labels.items() if label.kind == "blackboard"]
        names = list(dict.fromkeys(labels[top].name for top in tops))
        title = title_of(names, lambda name: self.roster.is_known(Label(name)))
        for top in tops:
            if title is None:
                doubt = "it can't be told where the title ends and the user's name begins"
                labels[top] = replace(labels[top], doubt=doubt)
            else:
                labels[top] = replace(labels[top], name=labels[top].name[len(title) :])

    def _may_be_a_student(self, top):
        label = label_of(*top)
        return self.roster.is_known(label) or (not self.roster.students and label.kind == "folder")

    def _student(self, top, is_file, label, items):
        """Whose an entry is; None after a row on what has to be done first."""
        if items[0].trouble and is_file:  # a link or a pipe in place of a folder, or a folder that is locked
            what, _, do = items[0].trouble.rstrip(".").rpartition(": ")
            self._say(top, what, do, lost=True, ownerless=not self.roster.is_known(label))
            return None
        if label.kind == "file" and not is_archive(top):
            self._about_a_file(top, label)
            return None
        try:
            return self.roster.find(label)
        except Unknown as error:
            what, _, do = str(error).partition(": ")
            self._say(error.student or top, what, do, lost=True, ownerless=error.student is None)
            return None

    def _about_a_file(self, top, label):
        """A row on a file at the top that is no archive which is opened."""
        named = replace(label, name=label.name.removesuffix(".tar"))
        who = self.roster.find(named) if self.roster.is_known(named) else None
        if is_other_archive(top):
            what, do = f"{top} is no .zip file", "ask for a .zip"
        else:
            what, do = f"{top}: its name says no student", "put it into a folder named after the student"
            what = f"{top} is a file beside no folder" if who else what
        if who:
            self._say(who, what, do, lost=True)
        elif is_other_archive(top) or top.casefold().endswith((".py", ".ipynb")):
            self._say(top, what, do, lost=True, ownerless=True)
        else:
            self._say(NOBODY, what, do)

    def _unwrapped(self, groups, depth=WRAPPERS):
        """The groups below folders or archives that hold everything and name nobody."""
        while depth and len(groups) == 1:
            ((top, is_file), items), depth = *groups.items(), depth - 1
            if platform_of_name(top, is_file) or self.roster.is_known(label_of(top, is_file)):
                break
            if is_file:
                items = inside(items[0], Budget(entries=float("inf")), SOURCE_DIRECTORY) if is_archive(top) else items
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
                    return read_time(stamps[0].read(Budget(), STAMP_LIMIT).decode("utf-8-sig", "replace"), UTC)
        except (TimeError, Unreadable) as error:
            what, _, do = str(error).rstrip(".").rpartition(": ")
            self._say(student, what, do)
        return None

    def _latest(self, student, attempts):
        """The attempt that counts: one account's latest. None, and a row, where nothing says which one that is."""
        if len(attempts) == 1:
            return attempts[0]
        names = ", ".join(attempt.source for attempt in attempts)
        times = [attempt.time for attempt in attempts]
        accounts = len({attempt.account for attempt in attempts})
        if accounts > 1 or None in times or times.count(max(times)) > 1:
            what = f"{len(attempts)} entries claim to be theirs ({names})"
            self._say(student, what, SETTLE, lost=True, ownerless=accounts > 1)
            return None
        latest = max(attempts, key=lambda attempt: attempt.time)
        when = show_time(latest.time, self.zone)
        what = f"{len(attempts)} attempts ({names})"
        self._say(student, what, f"nothing: the latest counts, {latest.source} ({when})")
        return latest


def _folder_of(item):
    """The folder on disk that an item's first part names; None for what lies in an archive."""
    return item.disk and (item.disk, *item.disk.parents)[len(item.parts) - 1]


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
        rows = read_table(read_file(path.resolve(), TIMES_LIMIT, "give a table of times only"), ("student", "time"))
    except FileNotFoundError:
        raise SourceError(f"{path} is not there: name a CSV file with the columns student and time.") from None
    except Unfit as error:
        raise SourceError(f"{path} {error}.") from None
    times, problems = {}, []
    for line, (who, text) in rows:
        try:
            student = roster.find(label_of(who, False))
            times[student] = None  # a bad time is no leave to take one from elsewhere
            times[student] = read_time(text, zone)
        except (TimeError, Unknown) as error:
            what, _, do = str(error).rstrip(".").rpartition(": ")
            problems.append(Problem(who, f"{path.name}, line {line}: {what}", do))
    return times, problems
