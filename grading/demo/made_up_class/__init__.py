"""A class of 30 to try the week with: `python -m grading demo-class NOTEBOOK OUT`.

    OUT/canvas.zip      what Canvas's "Download Submissions" gives: right and wrong programs, half-finished
                        and hostile ones, broken notebooks, odd archives (see people.py, one row a student)
    OUT/roster.csv      id, first_name, last_name, email, lms_user_id, as `nbgrader db student import` reads them
    OUT/times.csv       student and time of hand-in, which Canvas's archive does not tell
    OUT/expected.json   what is known of each before anything is graded

NOTEBOOK is the released week06.ipynb. The same notebook always gives the same bytes.
"""

import csv
import io
import json

from grading.demo.made_up_class import lms, notebooks, programs
from grading.demo.made_up_class.people import ABSENT, CLASS, DUE
from grading.proof.bank import load_metadata
from grading.proof.marks import WEEK

ARCHIVE, ROSTER, TIMES, EXPECTED = "canvas.zip", "roster.csv", "times.csv", "expected.json"

__all__ = ["ABSENT", "ARCHIVE", "CLASS", "DUE", "EXPECTED", "ROSTER", "TIMES", "disagreements", "expected", "write"]


def write(notebook, out):
    """Write the class into the folder `out`; `notebook` is the released notebook's file."""
    released = json.loads(notebook.read_text(encoding="utf-8"))
    out.mkdir(parents=True, exist_ok=True)
    (out / ARCHIVE).write_bytes(canvas(released))
    (out / ROSTER).write_text(roster(), encoding="utf-8", newline="")
    (out / TIMES).write_text(_table(("student", "time"), ((of.id, of.time) for of in CLASS)), "utf-8", newline="")
    (out / EXPECTED).write_text(json.dumps(expected(), indent=1, ensure_ascii=False), encoding="utf-8")


def canvas(released):
    """The archive of all submissions as bytes."""
    members, file = {}, lms.FIRST_FILE
    for user, student in enumerate(CLASS, lms.FIRST_USER):
        notebook = notebooks.handed_in(released, student.answers, student.harm)
        texts = programs.files(student.program) if student.program else {}
        code = {name: text.encode() for name, text in texts.items()}
        for name, data in lms.uploads(student.packing, notebook, code).items():
            members[lms.entry(student, user, file, name)] = data
            file += 1
    return lms.archive(members)


def roster():
    """The class list as CSV, the absent ones included."""
    people = enumerate((*CLASS, *ABSENT), lms.FIRST_USER)
    fields = ("id", "first_name", "last_name", "email", "lms_user_id")
    return _table(fields, ((of.id, *of.name, f"{of.id}@uni.example", user) for user, of in people))


def _table(titles, rows):
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows((titles, *rows))
    return stream.getvalue()


def expected():
    """{student id: what is known}: core points (or None), the named tests that can't pass, mistakes, late."""
    tests = {name: entry["test"] for name, entry in load_metadata().items()}
    found = {}
    for student in CLASS:
        mistakes = list(student.program.mistakes) if student.program else []
        found[student.id] = {
            "core": student.core, "not_passed": [tests[name] for name in mistakes], "mistakes": mistakes,
            "notebook": student.harm or "sound", "packing": student.packing, "late": student.late,
        }  # fmt: skip
    return found


def disagreements(known, results):
    """A sentence for each way in which results of the grader, {student id: result}, are not as expected.

    A student without a result has nothing that could be graded, which is right where the core is 0.
    """
    for name, known_of in known.items():
        result = results.get(name)
        if result is None or result["points"] is None:
            if known_of["core"] != 0 or result is not None:
                yield f"{name}: there is no grade"
            continue
        core = core_points(result)
        if known_of["core"] is not None and core != known_of["core"]:
            yield f"{name}: {core} points of the core, not {known_of['core']}"
        if known_of["core"] is None and not 0 < core < 100:
            yield f"{name}: {core} points of the core, but some of it is right and some wrong"
        passed = {test["name"] for test in result["tests"] if test["state"] == "passed"}
        for test in known_of["not_passed"]:
            if test in passed:
                yield f"{name}: {test} passed in spite of its mistake"


def core_points(result):
    """The points of the core in one result of the grader."""
    return sum(test["earned"] for test in result["tests"] if test["part"] in WEEK["CORE"])
