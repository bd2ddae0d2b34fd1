"""Which of the things that a student handed in are the week's files."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from grading.grader.student_files import take_in
from grading.grader.untrusted import Unfit
from grading.grader.untrusted.archives import Budget
from grading.grader.untrusted.notebooks import read_notebook
from grading.week.collect import CODE
from grading.week.collect.items import Unreadable, opened
from grading.week.collect.names import FILES, NOTEBOOK, module_path, week_file, without_additions
from grading.week.collect.problems import Problem
from grading.week.feedback_key import KEY, KEY_LIMIT, sound
from nanolm.source import BYTES_LIMIT, FILES_LIMIT

GIVEN = {"nanolm", "tests", "notebooks", "golden"}  # folders of the release that hold files of the same names
# A notebook without cells: nbgrader passes over a submission that has none, and its code would have no grade.
STAND_IN = json.dumps({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1).encode()


@dataclass
class Attempt:
    """What one student handed in at one time."""

    student: str
    source: str  # the entry's name, for sentences
    items: list  # as they lie in the source; archives not opened
    time: object = None  # datetime or None
    flat: bool = False  # files that the platform named, so that the highest number is the latest
    account: object = None  # who handed it in, as far as the platform tells people apart
    exchange: bool = False  # from nbgrader's exchange, which puts the key of the feedback beside the files
    budget: Budget = field(default_factory=Budget)  # of all that is read here
    files: dict = field(default_factory=dict)  # fixed name -> bytes, after `sort`
    problems: list = field(default_factory=list)

    def say(self, what, do, lost=False):
        """Add a row about this student to the table."""
        self.problems.append(Problem(self.student, what, do, lost))

    def sort(self):
        """Read the week's files out of the items; False where there is none."""
        candidates, others, beside = {}, [], []
        for item in opened(self.items, self.budget):
            name, number = week_file(item.name)
            if GIVEN & {part.casefold() for part in item.parts[:-1]}:
                continue
            if item.name.casefold().endswith(".py"):
                beside.append(item)
            if item.trouble:
                if name or item.serious:
                    self._refuse(item.trouble)
            elif name:
                candidates.setdefault(name, []).append((number, item))
            elif item.name.casefold().endswith(".ipynb"):
                others.append((0, item))
        if NOTEBOOK not in candidates and len(others) == 1:
            candidates[NOTEBOOK] = others
            self.say(f"the notebook is called {others[0][1].name}", "nothing: it was taken as week06.ipynb")
        elif others and NOTEBOOK not in candidates:
            left = ", ".join(item.path for _, item in others)
            self.say(f"none of {len(others)} notebooks is called week06.ipynb: {left}", "ask which one", lost=True)
        elif others:
            left = ", ".join(item.path for _, item in others)
            self.say(f"there are other notebooks too: {left}", "nothing, if the answers are in week06.ipynb; else ask")
        place = self._code_folder(candidates)
        for name, found in sorted(candidates.items()):
            if name != NOTEBOOK:
                found = [pair for pair in found if pair[1].parts[:-1] == place]
            if found:
                self._take(name, found)
        if place is not None:
            self._take_beside(place, beside)
        self._look()
        if self.exchange and self.files:
            self._take_key()
        return bool(self.files)

    def _code_folder(self, candidates):
        """The one folder whose code is taken: the most of the week's files, before that one called exercises_en."""
        holds = {}
        for name, found in candidates.items():
            if name != NOTEBOOK:
                for folder in {item.parts[:-1] for _, item in found}:
                    holds[folder] = holds.get(folder, 0) + 1
        if not holds:
            return None
        rank = {
            folder: (folder[-1:] == (CODE,), self._number(folder), count, -len(folder))
            for folder, count in holds.items()
        }
        best = max(rank.values())
        chosen = sorted(folder for folder in holds if rank[folder] == best)
        named = ", ".join("/".join(folder) or "the top" for folder in chosen)
        if len(chosen) > 1:
            self.say(f"several folders hold the week's files ({named})", "ask which one counts", lost=True)
            return ("/",)  # no item lies there
        if len(holds) > 1:
            left = ", ".join(sorted("/".join(folder) or "the top" for folder in holds if folder != chosen[0]))
            self.say(f"several folders hold the week's files; {named} was taken, not {left}", "ask where that is wrong")
        return chosen[0]

    def _take(self, name, found):
        """One of the copies of a file: the platform's latest, else the one with the exact name."""
        if name == NOTEBOOK:
            depth = min(len(item.parts) for _, item in found)
            found = [pair for pair in found if len(pair[1].parts) == depth]
        latest = self.flat and all(len(item.parts) == 1 for _, item in found)

        def rank(pair):
            number, item = pair
            return (self._number(item.parts[:-1]), number if latest else number == 0, -number, item.parts)

        order = sorted(found, key=rank, reverse=True)
        best = order[0][1]
        if len(order) > 1:
            left = ", ".join(item.path for _, item in order[1:])
            what = f"{name} is there {len(order)} times; {best.path} was taken, not {left}"
            self.say(what, "ask where that is wrong")
        try:
            self.files[name] = best.read(self.budget)
        except Unreadable as error:
            self._refuse(str(error))

    def _take_beside(self, place, beside):
        """The other Python files in the folder of the week's files and below it: they belong to the code."""
        found, left = {}, []

        def order(item):
            number = without_additions(item.name.rpartition(".")[0])[1]
            return (len(item.parts), item.parts[:-1], number if self.flat else -number)

        for item in sorted(beside, key=order):
            of_the_week = item.parts[:-1] == place and week_file(item.name)[0]
            path = module_path(item.parts[len(place) :]) if item.parts[: len(place)] == place else None
            if path and not of_the_week:
                found[f"{CODE}/{path}"] = item  # of several with one name the platform's last, else the name itself
        for name, item in found.items():
            if len(self.files) - (NOTEBOOK in self.files) >= FILES_LIMIT:
                left.append(item.path)
                continue
            try:
                self.files[name] = item.read(self.budget, BYTES_LIMIT)
            except Unreadable as error:
                self._refuse(str(error))
        if left:
            more = f" and {len(left) - 1} more" if len(left) > 1 else ""
            what = f"more than {FILES_LIMIT} Python files; without {left[0]}{more}"
            self.say(what, "ask which ones count", lost=True)

    def _take_key(self):
        """What nbgrader finds this student's feedback by, from beside the files."""
        try:
            data = next((item.read(self.budget, KEY_LIMIT) for item in self.items if item.parts == (KEY,)), b"")
        except Unreadable:
            data = b""
        if sound(data):
            self.files[KEY] = data.strip()
        else:
            self.say(f"{KEY} is missing or damaged", "ask to submit again, or give them their feedback yourself")

    def _refuse(self, sentence):
        what, _, do = sentence.rstrip(".").rpartition(": ")
        self.say(what, do, lost=True)

    def _number(self, folder):
        """The platform's number of the archive that a folder came in: the highest was handed in last."""
        return without_additions(folder[0])[1] if self.flat and folder else 0

    def _look(self):
        """Say what the grader will say about the code files, and what is wrong with the notebook."""
        if not self.files:
            return
        if NOTEBOOK not in self.files:
            self.files[NOTEBOOK] = STAND_IN
            self.say("no notebook", "nothing: an empty one stands in, so that the code is graded; ask for the answers")
        else:
            for trouble in notebook_troubles(self.files[NOTEBOOK]):
                self.say(f"{NOTEBOOK} {trouble}", "nothing: the code files are graded; ask for the written answers")
        if not any(name in self.files for name in FILES if name != NOTEBOOK):
            self.say("no code files, only a notebook", f"ask for {CODE}/*.py")
            return
        with TemporaryDirectory() as folder:
            for name, data in self.files.items():
                path = Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
            for sentence in take_in(folder).refused.values():
                what, _, do = sentence.rstrip(".").partition(": ")
                self.say(what, f"ask: {do}; the other files are graded")


def notebook_troubles(data):
    """Half-sentences on what is wrong with a notebook, as the grader will find it."""
    try:
        return [note.rstrip(".") for note in read_notebook(data).notes]
    except Unfit as error:
        return [str(error).partition(":")[0]]
