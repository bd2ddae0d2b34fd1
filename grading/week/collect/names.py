"""What names say: whose a thing is, as the platforms write it, and which of the week's files a file is."""

import re
from dataclasses import dataclass

from grading.week.collect import ASSIGNMENT, CODE
from nanolm.impl import CONTRACT
from nanolm.source import DEEPEST, NOT_CODE

NOTEBOOK = f"{ASSIGNMENT}.ipynb"
FILES = (NOTEBOOK, *(f"{CODE}/{module}.py" for module in CONTRACT))  # the week's files, under their fixed names
LONGEST = 100  # letters of a module's name

# What the platform writes comes first in all of these, what the student has named last: so that a file's name can't
# say whose it is, each pattern takes the first place where the platform's own words may stand, never a later one.
# nbgrader's exchange: user+assignment+time[+random]
EXCHANGE = re.compile(
    rf"(?P<name>.+?)\+{ASSIGNMENT}\+(?P<time>\d{{4}}-\d\d-\d\d[T ][\d:.]+ ?(?:[+-]\d\d(?::?\d\d)?|[A-Za-z][\w/-]*)?)"
    r"(?:\+(?P<rest>.*))?", re.S
)  # fmt: skip
# Moodle: "Name Surname_participant_assignsubmission_file" and a folder's content, or "_" and a file
MARK_OF_MOODLE = re.compile(r"_\d+_assignsubmission_(?:file|onlinetext)", re.I)
MOODLE = re.compile(
    r"(?P<name>.+?)_(?P<lms>\d+)_assignsubmission_(?P<kind>file|onlinetext)(?:_(?P<rest>.*))?", re.I | re.S
)
# Blackboard: title_user_attempt_time[_file]
BLACKBOARD = re.compile(
    r"(?P<name>.+?)_attempt_(?P<time>\d{4}-\d\d-\d\d-\d\d-\d\d-\d\d)(?:_(?P<rest>.*)|\.txt)?", re.I | re.S
)
# Canvas: sortablename[_LATE]_user_attachment_file; Canvas lets no "_1001_" into the name
CANVAS = re.compile(r"(?P<name>.+?)_(?P<late>late_)?(?P<lms>\d+)_\d+_(?P<rest>.+)", re.I | re.S)

# What browsers, systems and platforms add to a name: "-1", " (1)", "_2", " - Copy", " copy 2", ".txt".
ADDED = re.compile(r"(?:[ _-]*\((?P<a>\d+)\)|-(?P<b>\d+)|_(?P<c>\d+)|[ _-]+copy(?: ?\(?(?P<d>\d+)\)?)?)$", re.I)


@dataclass(frozen=True)
class Platform:
    """A learning platform, as the names tell it that it gives to what it lets download."""

    name: str
    kind: str
    pattern: re.Pattern
    files_only: bool = False


PLATFORMS = (
    Platform("nbgrader's exchange", "exchange", EXCHANGE),
    Platform("Moodle", "moodle", MOODLE),
    Platform("Blackboard", "blackboard", BLACKBOARD, files_only=True),
    Platform("Canvas", "canvas", CANVAS, files_only=True),
)


@dataclass(frozen=True)
class Label:
    """What the name of a thing's top entry says."""

    name: str  # of the student, as the platform writes it
    lms: str = ""  # the platform's number of the student
    rest: str = ""  # the file's own name, where the entry is one file
    time: str = ""
    late: bool = False
    kind: str = "folder"  # how the name was understood
    doubt: str = ""  # why it can't be said whose it is; to be followed by what to do

    @property
    def account(self):
        """Who handed it in, as far as the platform tells people apart."""
        return (self.kind, self.name, self.lms)


def label_of(name, is_file, platform=None):
    """The Label of a top entry's name in a source of this platform; without one, the name is a student's."""
    found = platform and (is_file or not platform.files_only) and platform.pattern.fullmatch(name)
    if not found:
        stem = name.rsplit(".", 1)[0] if is_file and "." in name else name
        return Label(stem, kind="file" if is_file else "folder")
    words = {word: text or "" for word, text in found.groupdict().items()}
    kind = "online text" if words.get("kind", "").lower() == "onlinetext" else platform.kind
    time, doubt = words.get("time", ""), ""
    if platform.kind == "blackboard":
        time = f"{time[:10]} {time[11:].replace('-', ':')}"
    if platform.kind == "moodle" and len(MARK_OF_MOODLE.findall(name)) > 1:  # people may choose their names there
        doubt = "Moodle's own words stand twice in this name"
    late = bool(words.get("late"))
    return Label(words["name"], words.get("lms", ""), words.get("rest", ""), time, late, kind, doubt)


def platform_of_name(name, is_file):
    """The platform that may have given a name: of several that whose own words end first. None for a plain name."""
    fits = []
    for platform in PLATFORMS:
        found = platform.pattern.fullmatch(name) if is_file or not platform.files_only else None
        if found:
            rest = found["rest"]
            fits.append((len(name) - len(rest) if rest else len(name), platform))
    return min(fits, key=lambda fit: fit[0])[1] if fits else None


def title_of(names, is_student):
    """What stands before the user in all of Blackboard's names: the assignment's title. None where it is doubtful.

    Both may hold "_". Of all beginnings that the names share, it is the one that leaves the most known users.
    """
    first, *others = names
    ends = [at + 1 for at, letter in enumerate(first) if letter == "_"]
    shared = [first[:end] for end in ends if all(name.startswith(first[:end]) for name in others)]
    if not shared:
        return ""
    known = [sum(is_student(name[len(title) :]) for name in names) for title in shared]
    best = [title for title, count in zip(shared, known, strict=True) if count == max(known)]
    return best[-1] if len(best) == 1 or not max(known) else None


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


def module_path(parts):
    """The path below the week's files of another Python file that can be imported; None where it can't be."""
    *folders, name = parts
    stem, dot, extension = name.rpartition(".")
    if extension.casefold() != "py" or len(folders) >= DEEPEST or NOT_CODE & set(folders):
        return None
    if not stem.isidentifier():  # a platform or a browser numbers what is handed in again
        stem = without_additions(stem)[0]
    names = (*folders, stem)
    if all(part.isidentifier() and len(part) <= LONGEST for part in names):
        return "/".join((*folders, f"{stem}.py"))
    return None
