"""The instructor's side: `python -m grading COMMAND`."""

import sys

from grading import preflight
from nanolm.command_line import run_command

# In the order in which an instructor, then a maintainer, needs them.
COMMANDS = {
    "demo": "grading.demo.command",
    "samples": "grading.demo.check_samples",
    "doctor": "grading.grader.doctor",
    "attack": "grading.proof.attacks.command",
    "course": "grading.week.course",
    "release": "grading.week.release.command",
    "collect": "grading.week.collect.command",
    "run": "grading.grader.run",
    "export": "grading.week.exports.command",
    "report": "grading.week.report.command",
    "book": "grading.authoring.book",
    "bank": "grading.proof.bank_page",
    "demo-class": "grading.demo.made_up_class.command",
    "stubs": "grading.authoring.stubs",
    "notebooks": "grading.authoring.notebooks",
    "week-notebook": "grading.authoring.week_notebook",
    "golden": "grading.authoring.golden",
    "matrix": "grading.proof.matrix",
    "fingerprints": "grading.proof.fingerprints",
    "styles": "grading.proof.planted",
    "mutants": "grading.proof.mutants",
    "soak": "grading.proof.soak",
    "fuzz": "grading.proof.fuzz",
    "bench": "grading.proof.bench.command",
    "picture": "grading.demo.picture",
}


def main(argv=None):
    """Run one command and return its exit code."""
    about = "The instructor's and the maintainer's side of the week."
    return run_command("python -m grading", about, COMMANDS, argv, preflight.missing)


if __name__ == "__main__":
    sys.exit(main())
