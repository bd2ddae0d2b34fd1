"""`python -m grading run`: grade a folder of submissions."""

import fcntl
import os
import shutil
import sys
import time
from contextlib import contextmanager
from pathlib import Path

from grading.grader.fork_server import ForkServer
from grading.grader.inside.text import clean
from grading.grader.limits import Limits
from grading.grader.results import ResultsFolder, key_of, setting
from grading.grader.secret import SecretError, private_seed, read_secret
from grading.grader.states import GRADER_ERROR, GraderError
from grading.grader.student_files import take_in

HELP = "grade every submission in a folder: JSON, CSV and Gradescope files, only what is missing or changed"
WORK = "work"  # of the results folder: private while a run lasts, emptied by the next
WARNING = (
    "WARNING: --unsandboxed: student code runs with your rights on this machine. "
    "Tests and answers are still out of its process; every result says that it was graded so."
)


class RunError(Exception):
    """Nothing can be graded; the message is one sentence."""


def add_arguments(parser):
    parser.add_argument("submissions", type=Path, metavar="SUBMISSIONS_FOLDER", help="a folder for each submission")
    parser.add_argument("--out", type=Path, required=True, metavar="RESULTS", help="where the results go")
    parser.add_argument("--secret", required=True, metavar="FILE_OR_ENV", help="a file, or a variable's name")
    parser.add_argument("--jobs", type=int, default=2, help="submissions side by side")
    parser.add_argument("--unsandboxed", action="store_true", help="grade without bubblewrap; recorded in each result")


def run(args):
    """Grade, write, export; 1 where a result is missing."""
    try:
        return _run(args)
    except (RunError, SecretError, GraderError) as error:
        print(f"Nothing is graded: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(stopped(error, args.out), file=sys.stderr)
        return 1


def stopped(error, out):
    """A sentence on a full disk, or a folder that may not be written."""
    where = f"{error.filename}: " if error.filename else ""
    return (
        f"Nothing more is graded: {clean(where + (error.strerror or str(error)))}. "
        f"What is in {clean(out)} is whole: make room there, or name another folder, and run again."
    )


def _run(args):
    if args.jobs < 1:
        raise RunError(f"--jobs {args.jobs} must be at least 1.")
    if args.unsandboxed:
        print(WARNING, file=sys.stderr)
    return grade_folder(args.submissions, args.out, read_secret(args.secret), not args.unsandboxed, args.jobs)


def grade_folder(submissions, out, secret, sandboxed, jobs, arguments=("tests",), limits=None, made_by=None):
    """Grade what is missing or changed and export; 1 where a grade is missing. `arguments` name the tests.

    `made_by` are versions as results.versions gives them: several runs that are to agree on them share one.
    """
    if not submissions.is_dir():
        raise RunError(f"{submissions} is not a folder: name the one that holds a folder for each submission.")
    intakes = [take_in(path) for path in sorted(submissions.iterdir()) if not path.name.startswith(".")]
    if not intakes:
        raise RunError(f"{submissions} is empty: put a folder for each submission there.")
    results_folder = ResultsFolder(out.absolute())
    graded = grade_missing(intakes, results_folder, secret, sandboxed, jobs, arguments, limits, made_by)
    return _export(results_folder, intakes, graded)


def grade_missing(intakes, results_folder, secret, sandboxed, jobs, arguments=("tests",), limits=None, made_by=None):
    """Put a result into the folder for each intake that has no valid one there; how many those were."""
    limits, start = limits or Limits(), time.monotonic()
    depends_on = setting(arguments, secret, sandboxed, limits, made_by)
    with _alone(results_folder.out) as work:
        todo = [intake for intake in intakes if not results_folder.valid(intake.name, key_of(intake, depends_on))]
        if not todo:
            return 0
        with ForkServer(sandboxed, min(jobs, len(todo))) as fork_server:
            from grading.grader.batch import Batch, prepare  # brings torch, which the fork server imports meanwhile

            batch = Batch(prepare(private_seed(secret), work, arguments), secret, sandboxed, limits, depends_on)
            for count, (intake, result) in enumerate(batch.results(todo, fork_server), 1):
                results_folder.put(intake.name, result)
                _progress(count, len(todo), intake.name, time.monotonic() - start)
    return len(todo)


def _export(results_folder, intakes, graded):
    results = results_folder.all(intake.name for intake in intakes)
    failed = [result["submission"] for result in results if result["state"] == GRADER_ERROR]
    if failed or len(results) != len(intakes):
        results_folder.withdraw()
        for result in results:
            if result["state"] == GRADER_ERROR:
                print(f"grader error on {clean(result['submission'])}: {clean(result['error'])}", file=sys.stderr)
        print(f"No table is written: {len(failed)} submissions have no grade. Run again to try them.", file=sys.stderr)
        return 1
    results_folder.export(results)
    print(f"{len(results)} submissions, {graded} graded now: {results_folder.out / 'grades.csv'}")
    return 0


@contextmanager
def _alone(out):
    """Hold the results folder for one run, with an empty private folder in it."""
    with (out / ".lock").open("w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunError(f"another run is writing into {out}: wait for it, or take another folder.") from None
        work = out / WORK
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(mode=0o700)
        try:
            yield work
        finally:
            shutil.rmtree(work, ignore_errors=True)


def _progress(count, total, name, seconds):
    width = 30
    if count < total and not os.isatty(2):
        return  # in a log one line at the end is enough
    bar = "#" * (width * count // total)
    end = "\r" if count < total else "\n"
    print(f"[{bar:<{width}}] {count} of {total}, {seconds:.0f} s  {clean(name, 30):<30}", end=end, file=sys.stderr)
