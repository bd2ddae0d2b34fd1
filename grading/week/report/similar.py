"""Which submissions share more code than chance explains. A pointer to look at both, never a proof.

copydetect reads the code as tokens, so that names, comments and layout do not count, and cuts it into passages
of PASSAGE signs (the winnowing family of methods, as MOSS). Passages of the stubs are not counted, nor those that
more than COMMON students have: short exercises have short answers. What two students share is then compared
with the smaller of their two. As a passage is compared only among those few who have it, 500 students take
a little more than ten times as long as 50, not a hundred times.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

from copydetect.utils import filter_code, hashed_kgrams

from grading.authoring.stubs import generate
from grading.grader.student_files import take_in

PASSAGE = 25  # signs after names have become one letter; copydetect's own measure of noise
COMMON = 10  # students; MOSS ignores a passage from the same number on
LEAST = 200  # passages of one's own, below which there is too little to compare
SHARE = 0.8  # from which on a pair is named
LETTERS = 100_000  # of one student's code that are compared, the week's own files first: they take a second


@dataclass(frozen=True)
class Pair:
    """Two students, the share of the smaller one's own passages that the other has too, and the files they are in."""

    one: str
    other: str
    share: float
    files: tuple


def submissions(course, assignment, students):
    """{student: {file name: text}} of the code that lies in a course's submitted folder."""
    found = {}
    for student in students:
        place = course.submitted(student, assignment)
        if place.is_dir():
            found[student] = dict(_compared(take_in(place).files))
    return found


def _compared(files):
    """What of a student's files is compared, so that no student can make the report wait."""
    left = LETTERS
    for name, text in files.items():
        yield name, text[:left]
        left -= len(text[:left])


def pairs(texts):
    """The Pairs among {student: {file name: text}} that share at least SHARE, the most alike first."""
    stubs = frozenset().union(*map(passages, generate().values()))
    own = {student: {name: passages(text) - stubs for name, text in of.items()} for student, of in texts.items()}
    whole = {student: frozenset().union(*of.values()) for student, of in own.items()}
    holders = defaultdict(list)
    for student in sorted(whole):
        for passage in whole[student]:
            holders[passage].append(student)
    rare = {passage: of for passage, of in holders.items() if len(of) <= COMMON}
    sizes = Counter(student for of in rare.values() for student in of)
    shared = Counter(pair for of in rare.values() for pair in combinations(of, 2))
    found = []
    for (one, other), count in shared.items():
        least = min(sizes[one], sizes[other])
        if least >= LEAST and count >= SHARE * least:
            found.append(Pair(one, other, count / least, _files(own[one], own[other], rare)))
    return sorted(found, key=lambda pair: (-pair.share, pair.one, pair.other))


def _files(one, other, rare):
    """The files in which two students share passages."""
    return tuple(name for name in one if name in other and any(passage in rare for passage in one[name] & other[name]))


@lru_cache(maxsize=10_000)
def passages(text):
    """The passages of one Python file, hashed; equal only to those of the same run of Python."""
    code, _ = filter_code(text, "submission.py", language="python")
    return frozenset(map(int, hashed_kgrams(code, PASSAGE)))
