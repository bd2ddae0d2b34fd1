"""The instructor's side: `python -m grading COMMAND`."""

import sys

from grading import attack
from grading.autograding import course
from grading.class_report import command as report
from grading.collect import command as collect
from grading.exports import command as export
from grading.grader import doctor, run
from grading.release import command as release
from nanolm.command_line import run_command

COMMANDS = {
    "release": release, "run": run, "course": course, "collect": collect, "export": export, "report": report,
    "doctor": doctor, "attack": attack,
}  # fmt: skip


def main(argv=None):
    """Run one command and return its exit code."""
    return run_command("python -m grading", "The instructor's side of the week.", COMMANDS, argv)


if __name__ == "__main__":
    sys.exit(main())
