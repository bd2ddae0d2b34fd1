"""The week's autograder for Classroom 50: CLASSROOM/autograders/week06/autograder.py, with the folder week/ beside it.

Its runner starts this file in the student's checkout. The public tests that lie here, not those in the checkout, ask
the student's exercises_en/, and ./result.json says what they found, as Classroom 50's wiki (Advanced Autograding) asks.

The tests and the student's code share a process, and a student may change what runs in a repository of their own: this
is feedback. The grade comes from the course's own grader and its secret, which must never be put here.
"""

import datetime
import json
import os
import subprocess
import sys
from pathlib import Path

WEEK = Path(__file__).resolve().parent / "week"
SECONDS = 900
NEEDED = ("torch", "numpy", "pytest", "safetensors")
GREEN = ("passed", "advice")


def main():
    """Write result.json; 1 where the tests could not be run at all, which Classroom 50 takes for an error of ours."""
    if subprocess.run([sys.executable, "-c", f"import {', '.join(NEEDED)}"], capture_output=True).returncode:
        index = ("--extra-index-url", "https://download.pytorch.org/whl/cpu")
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "-c", str(WEEK / "constraints.txt"), *index, *NEEDED]
        if subprocess.run(pip).returncode:
            print("::error::what the tests need could not be installed", file=sys.stderr)
            return 1
    report = WEEK / "report.json"
    report.unlink(missing_ok=True)
    env = {**os.environ, "NANOLM_IMPL": str(Path.cwd() / "exercises_en"), "PYTHONPATH": str(WEEK)}
    try:
        run = subprocess.run(
            [sys.executable, "-m", "pytest", "tests", "-q", "-p", "no:cacheprovider", "--report", str(report)],
            cwd=WEEK, env=env, timeout=SECONDS, capture_output=True, text=True, encoding="utf-8", errors="replace",
        )  # fmt: skip
        said, found = run.stdout + run.stderr, report.is_file()
    except subprocess.TimeoutExpired:
        said, found = f"The tests took more than {SECONDS // 60} minutes: is there a loop that does not end?", False
    print(said)
    tests = json.loads(report.read_text(encoding="utf-8"))["tests"] if found else [not_run(said)]
    Path("result.json").write_text(json.dumps(result(tests), indent=2), encoding="utf-8")
    return 0


def not_run(said):
    """What stands for all tests where the student's files let none of them begin."""
    last = next((line for line in reversed(said.splitlines()) if line.strip()), "the tests did not run")
    return {"name": "the files can be read", "part": "all", "points": 1, "outcome": "failed", "message": last}


def result(tests):
    """The result of one submission, in the form that Classroom 50's result.json has."""
    shown = [
        {
            "test-name": f"{test['part']}: {test['name']}",
            "passed": test["outcome"] in GREEN,
            "score": test["points"] if test["outcome"] == "passed" else 0,
            "max-score": test["points"],
            "message": test["message"] or test["outcome"],
        }
        for test in tests
    ]
    env = os.environ
    about = {
        "schema": "classroom50/result/v1",
        "classroom": env["CLASSROOM"],
        "assignment": env["ASSIGNMENT"],
        "assignment_type": env.get("ASSIGNMENT_TYPE") or "individual",
        "owner": env.get("OWNER") or env["USERNAME"],
        "submission": env["SUBMISSION_TAG"],
        "commit": env["COMMIT_URL"],
        "release": env["RELEASE_URL"],
        "review": env.get("REVIEW_URL") or env["COMMIT_URL"],
        "datetime": when(),
    }
    totals = {key: sum(test[key] for test in shown) for key in ("score", "max-score")}
    return {**about, **totals, "tests": shown}


def when():
    """The moment of the submission, the graded commit's, in UTC; that of now where there is no commit."""
    git = subprocess.run(["git", "log", "-1", "--format=%cI"], capture_output=True, text=True)
    moment = datetime.datetime.now(datetime.UTC)
    if git.returncode == 0 and git.stdout.strip():
        moment = datetime.datetime.fromisoformat(git.stdout.strip()).astimezone(datetime.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


if __name__ == "__main__":
    sys.exit(main())
