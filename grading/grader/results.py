"""Results on disk: one JSON file a submission, written whole or not at all, and tables made from them.

A result carries the key of all that it depends on, so that a later run knows what is still valid.
"""

import hashlib
import json
import os
import re
from pathlib import Path

from grading.grader.inside.text import clean
from grading.grader.secret import fingerprint
from grading.grader.spreadsheet import as_csv
from grading.grader.states import ADVICE, GRADER_ERROR, PASSED
from grading.paths import ROOT

RESULTS, GRADESCOPE, TABLE = "results", "gradescope", "grades.csv"
PLAIN = re.compile(r"[a-z0-9_][a-z0-9_@+.-]{0,98}(?<!\.)")  # a name that is a file's as it stands
WEEK_FILES = ("tests/**/*.py", "tests/**/*.toml", "tests/**/*.safetensors", "nanolm/**/*.py", "reference/*.py")
GRADER_FILES = ("grading/grader/**/*.py", "grading/authoring/golden.py")


def versions():
    """Digests of the week's files and of the grader's."""
    return {"week": _digest(WEEK_FILES), "grader": _digest(GRADER_FILES)}


def _digest(patterns):
    digest = hashlib.sha256()
    for path in sorted(path for pattern in patterns for path in ROOT.glob(pattern)):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{path.relative_to(ROOT)} {content}\n".encode())
    return digest.hexdigest()


def setting(arguments, secret, sandboxed, limits, made_by=None):
    """What results depend on besides the submission. `made_by` are the versions that count, else those of now."""
    return {
        **(made_by or versions()), "secret": fingerprint(secret), "sandboxed": sandboxed,
        "tests": list(arguments), "limits": repr(limits),
    }  # fmt: skip


def key_of(intake, setting):
    """The key of one submission under `setting`: versions, secret's fingerprint, sandbox, tests."""
    taken = {"files": intake.files, "place": intake.place, "refused": intake.refused, "notes": intake.notes}
    taken["setting"] = setting
    return hashlib.sha256(json.dumps(taken, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()


class ResultsFolder:
    """The results folder. Only one process writes."""

    def __init__(self, out):
        self.out = Path(out)
        for folder in (RESULTS, GRADESCOPE):
            (self.out / folder).mkdir(parents=True, exist_ok=True)

    def valid(self, name, key):
        """Whether there is a graded result of this submission under this key."""
        result = self._read(name)
        return result is not None and result.get("key") == key and result.get("state") != GRADER_ERROR

    def put(self, name, result):
        """Keep one submission's result, in place of an older one."""
        write(self._path(name), json.dumps(result, indent=1))

    def all(self, names):
        """The results of these submissions, in order of their names."""
        found = (self._read(name) for name in sorted(names))
        return [result for result in found if result is not None]

    def export(self, results):
        """grades.csv and Gradescope's files. The caller makes sure that no result is missing."""
        for result in results:
            folder = self.out / GRADESCOPE / file_name(result["submission"])
            folder.mkdir(exist_ok=True)
            write(folder / "results.json", json.dumps(gradescope(result), indent=1))
        write(self.out / TABLE, table(results))

    def withdraw(self):
        """Take back the table: a grade is missing."""
        (self.out / TABLE).unlink(missing_ok=True)

    def _path(self, name):
        return self.out / RESULTS / f"{file_name(name)}.json"

    def _read(self, name):
        """The result of that submission and of no other; None where there is none, or none that is whole."""
        try:
            result = json.loads(self._path(name).read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return None
        return result if result.get("submission") == name else None


def write(path, text):
    """Write a file so that after a stop at any moment the old or the new one is there, whole."""
    aside = path.with_name(f".{path.name}.new")
    try:
        with aside.open("w", encoding="utf-8", newline="") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(aside, path)
    except OSError:  # a full disk: no half of a file stays behind
        aside.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def file_name(name):
    """A submission's name as a file's, another one for every name: itself where it is plain, else with its digest.

    "~" is in no plain name and capitals are in none, so that a name that is made to look like another one's file
    meets it neither here nor where a file system takes capitals for small letters.
    """
    if PLAIN.fullmatch(name):
        return name
    readable = "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in name[:40])
    return f"{readable}~{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:40]}"


def table(results):
    """The class as CSV: a row for each submission, a column for each part."""
    parts = list(dict.fromkeys(test["part"] for result in results for test in result["tests"]))
    rows = [("submission", "points", "of", *parts, "sandboxed")]
    for result in results:
        earned = {part: sum(test["earned"] for test in result["tests"] if test["part"] == part) for part in parts}
        of = sum(test["points"] for test in result["tests"])
        rows.append((clean(result["submission"]), result["points"], of, *earned.values(), result["sandboxed"]))
    return as_csv(*rows, end="\r\n")


def gradescope(result):
    """What Gradescope reads as an autograder's results.json."""
    tests = [
        {
            "name": f"{test['part']}: {test['name']}",
            "score": test["earned"],
            "max_score": test["points"],
            "status": "passed" if test["state"] in (PASSED, ADVICE) else "failed",
            "output": _sentence(test),
            "output_format": "text",
        }
        for test in result["tests"]
    ]
    notes = [*result["notes"], *(f"{text}" for text in result["files"].values() if text != "taken in")]
    return {"score": result["points"], "output": "\n".join(map(clean, notes)), "output_format": "text", "tests": tests}


def _sentence(test):
    mistake = f" (python -m nanolm hint {test['mistake']})" if test["mistake"] else ""
    return clean(f"{test['state']}: {test['message']}{mistake}") if test["message"] else test["state"]
