"""Who is in the course: nbgrader's own list of students, asked by the names that platforms use."""

import re
import unicodedata
from dataclasses import dataclass

from rapidfuzz import fuzz, process

from grading.week.databases import open_gradebook

PLAIN_ID = re.compile(r"[^\W_][\w .@+\-]{0,99}")  # a name that is taken for an id where there is no roster
ADD = "rename it, or `nbgrader db student add` the student"
NAME_BYTES = 200  # of an id, so that it is a folder's name with some letters to spare


@dataclass(frozen=True)
class Student:
    """A student as the gradebook has them."""

    id: str
    first: str = ""
    last: str = ""
    email: str = ""
    lms: str = ""


class Unknown(Exception):
    """Nobody, or more than one, goes by a name; the message says what to do. `student` is whose it is all the same."""

    def __init__(self, message, student=None):
        super().__init__(message)
        self.student = student


class Roster:
    """The students of a course. An empty roster takes every name for an id, as nbgrader does."""

    def __init__(self, students):
        self.students = tuple(students)
        self._by_key = {}
        for student in self.students:
            for key in _keys(student):
                self._by_key.setdefault(key, set()).add(student.id)
        self._by_lms = {student.lms: student.id for student in self.students if student.lms}

    def find(self, label):
        """The id of the student whom a Label means, or Unknown."""
        student = self._named(label)
        if not is_folder_name(student):
            do = "give this student an id of letters, digits, - and _ (`nbgrader db student add`)"
            raise Unknown(f"the id {student} can't be a folder's name: {do}", student)
        return student

    def _named(self, label):
        if label.doubt:
            raise Unknown(f"{label.doubt}: rename it to the student's id")
        if label.lms and label.lms in self._by_lms:
            return self._by_lms[label.lms]
        if not self.students:
            return self._as_id(label)
        if any(student.id == label.name for student in self.students):
            return label.name
        if label.kind == "exchange":  # users of this machine, who are their ids
            raise Unknown(f"not on the roster{self._nearest(label)}: {ADD}")
        ids = self._by_key.get(_key(label.name), set())
        if len(ids) == 1:
            return next(iter(ids))
        if ids:
            raise Unknown(f"several students go by this name ({', '.join(sorted(ids))}): rename it to the student's id")
        raise Unknown(f"not on the roster{self._nearest(label)}: {ADD}")

    def is_known(self, label):
        """Whether a label means somebody on the roster."""
        try:
            self.find(label)
        except Unknown:
            return False
        return bool(self.students)

    @staticmethod
    def _as_id(label):
        name = unicodedata.normalize("NFC", label.name)  # macOS takes accents apart
        name = "_".join(name.split()) if label.kind == "moodle" else name.strip()
        if not PLAIN_ID.fullmatch(name):
            raise Unknown("this can't be a student's id: rename it, or fill the roster (`nbgrader db student import`)")
        return name

    def _nearest(self, label):
        found = process.extractOne(_key(label.name), list(self._by_key), scorer=fuzz.ratio, score_cutoff=75)
        return f" (is it {', '.join(sorted(self._by_key[found[0]]))}?)" if found else ""


def roster_of(directory):
    """The Roster that the gradebook of nbgrader's CourseDirectory holds."""
    with open_gradebook(directory.db_url, directory.course_id) as gradebook:
        return Roster(
            Student(row.id, row.first_name or "", row.last_name or "", row.email or "", str(row.lms_user_id or ""))
            for row in gradebook.students
        )


def is_folder_name(student):
    """Whether a student's id can be the name of a folder that nbgrader sees."""
    odd = "/" in student or "\\" in student or student.startswith(".") or student != student.strip()
    return bool(student) and student.isprintable() and not odd and len(student.encode()) <= NAME_BYTES


def _keys(student):
    """Under which names a student may hand in: the id, the e-mail, and the name in both orders."""
    named = (f"{student.first} {student.last}", f"{student.last} {student.first}") if student.last else ()
    return {_key(name) for name in (student.id, student.email, *named) if _key(name)}


def _key(name):
    """A name without case, accents, blanks and punctuation: one platform drops them, another keeps them."""
    name = unicodedata.normalize("NFKD", name.casefold())
    return "".join(letter for letter in name if letter.isalnum())
