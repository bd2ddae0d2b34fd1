"""The two-zone grader on a class, in a process of its own: nbgrader's process, a server perhaps, forks nothing.

`ask` is called by nbgrader's side, `main` is the process. Its standard error is the caller's, so that the progress
bar is seen; on its standard output it says in JSON what kept it from grading at all.
"""

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path

from grading.paths import ROOT

SECRET = "NANOLM_SECRET"  # the variable that comes before the file
TURN = ".turn"  # of the results folder: gradings of one course wait for each other


class NothingGraded(Exception):
    """The grader could not begin, or did not come to an end; the message is one sentence."""


def ask(submissions, results, secret_file, sandboxed, jobs, tests):
    """Grade what is missing or changed of {student: folder}; the results as {student: result}."""
    if SECRET not in os.environ and not Path(secret_file).is_file():
        raise NothingGraded(
            f"the secret {secret_file} is missing: bring the file back, or set {SECRET}. "
            "`python -m grading course` makes a new one, and with it another exam."
        )
    asked = {
        "submissions": {student: str(folder) for student, folder in submissions.items()},
        "results": str(results),
        "secret": SECRET if SECRET in os.environ else str(secret_file),
        "sandboxed": sandboxed,
        "jobs": jobs,
        "tests": list(tests),
    }
    process = subprocess.run(
        [sys.executable, "-m", "grading.week.autograde.grader"],
        cwd=ROOT, input=json.dumps(asked), stdout=subprocess.PIPE, text=True, encoding="utf-8",
    )  # fmt: skip
    lines = process.stdout.strip().splitlines()
    if process.returncode != 0:
        raise NothingGraded(lines[-1] if lines else f"the grader ended with exit code {process.returncode}.")
    return json.loads(lines[-1])


def main():
    """Grade what standard input asks for and print the results."""
    from grading.grader.results import ResultsFolder
    from grading.grader.run import RunError, grade_missing, stopped
    from grading.grader.secret import SecretError, read_secret
    from grading.grader.states import GraderError
    from grading.grader.student_files import take_in

    asked = json.load(sys.stdin)
    try:
        secret = read_secret(asked["secret"])
        intakes = [take_in(Path(folder), student) for student, folder in sorted(asked["submissions"].items())]
        results_folder = ResultsFolder(Path(asked["results"]))
        with (results_folder.out / TURN).open("w", encoding="utf-8") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
            grade_missing(intakes, results_folder, secret, asked["sandboxed"], asked["jobs"], tuple(asked["tests"]))
    except (RunError, SecretError, GraderError) as error:
        print(str(error).replace("\n", " "))
        return 1
    except OSError as error:
        print(stopped(error, asked["results"]))
        return 1
    print(json.dumps({result["submission"]: result for result in results_folder.all(asked["submissions"])}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
