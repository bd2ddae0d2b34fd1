"""What names say: whose a parcel is, as the platforms write it, and which of the week's files a file is."""

import re
from dataclasses import dataclass

from grading.collect import ASSIGNMENT, CODE
from nanolm.impl import CONTRACT

NOTEBOOK = f"{ASSIGNMENT}.ipynb"
FILES = (NOTEBOOK, *(f"{CODE}/{module}.py" for module in CONTRACT))  # a submission, under its fixed names

# Canvas: sortablename[_LATE]_user_attachment_file
CANVAS = re.compile(r"(?P<name>[^_]+)_(?P<late>late_)?(?P<lms>\d+)_\d+_(?P<rest>.+)", re.I)
# Moodle: "Name Surname_participant_assignsubmission_file" and a folder's content, or "_" and a file
MOODLE = re.compile(r"(?P<name>.+)_\d+_assignsubmission_(?P<kind>file|onlinetext)(?:_(?P<rest>.*))?", re.I)
# Blackboard: title_user_attempt_time[_file]
BLACKBOARD = re.compile(
    r".*_(?P<name>[^_]+)_attempt_(?P<time>\d{4}-\d\d-\d\d-\d\d-\d\d-\d\d)(?:_(?P<rest>.*)|\.txt)?", re.I
)
# nbgrader's exchange: user+assignment+time[+random]
EXCHANGE = re.compile(rf"(?P<name>.+)\+{ASSIGNMENT}\+(?P<time>[^+]+)(?:\+.*)?")

# What browsers, systems and platforms add to a name: "-1", " (1)", "_2", " - Copy", " copy 2", ".txt".
ADDED = re.compile(r"(?:[ _-]*\((?P<a>\d+)\)|-(?P<b>\d+)|_(?P<c>\d+)|[ _-]+copy(?: ?\(?(?P<d>\d+)\)?)?)$", re.I)


@dataclass(frozen=True)
class Label:
    """What the name of a parcel's top entry says."""

    name: str  # of the student, as the platform writes it
    lms: str = ""  # the platform's number of the student
    rest: str = ""  # the file's own name, where the entry is one file
    time: str = ""
    late: bool = False
    kind: str = "folder"  # how the name was understood


def label_of(name, is_file):
    """The Label of a top entry's name."""
    if found := EXCHANGE.fullmatch(name):
        return Label(found["name"], time=found["time"], kind="exchange")
    if found := MOODLE.fullmatch(name):
        kind = "moodle" if found["kind"].lower() == "file" else "online text"
        return Label(found["name"], rest=found["rest"] or "", kind=kind)
    if is_file and (found := BLACKBOARD.fullmatch(name)):
        day, clock = found["time"][:10], found["time"][11:].replace("-", ":")
        return Label(found["name"], rest=found["rest"] or "", time=f"{day} {clock}", kind="blackboard")
    if is_file and (found := CANVAS.fullmatch(name)):
        return Label(found["name"], found["lms"], found["rest"], late=bool(found["late"]), kind="canvas")
    stem = name.rsplit(".", 1)[0] if is_file and "." in name else name
    return Label(stem, kind="file" if is_file else "folder")


def without_additions(stem):
    """(stem, number): a name without what was added to it, and the number of the copy, 0 for the name itself."""
    number = 0
    while found := ADDED.search(stem):
        digits = next((text for text in found.groups() if text), "1")
        number = max(number, int(digits[:9]))
        stem = stem[: found.start()].rstrip()
    return stem, number


def week_file(name):
    """(fixed name, number of the copy) of one of the week's files, (None, 0) of any other."""
    lower = name.casefold()
    for extra in (".txt", ".json"):  # what a browser may add to a file that it takes for text
        lower = lower.removesuffix(extra)
    stem, dot, extension = lower.rpartition(".")
    # "week06" itself ends in digits, so the name is asked before anything is taken off.
    stem, number = (stem, 0) if stem == ASSIGNMENT else without_additions(stem)
    if extension == "ipynb" and stem == ASSIGNMENT:
        return NOTEBOOK, number
    if extension == "py" and stem in CONTRACT:
        return f"{CODE}/{stem}.py", number
    return None, 0
