"""The student's loop: the week's tests on the reference, against the bare import of torch and pytest."""

import os
import subprocess
import sys

from grading.paths import ROOT
from grading.proof.bench.ratio import in_turn

TESTS = [sys.executable, "-m", "pytest", "tests", "-q", "-p", "no:cacheprovider"]
IMPORT = [sys.executable, "-c", "import torch, pytest"]


def ratios(runs):
    """Whole commands, each in a process of its own."""
    yield in_turn(
        "the week's tests", runs, ("pytest tests, on the reference", lambda: command(TESTS, NANOLM_IMPL="reference")),
        ("import torch, pytest", lambda: command(IMPORT)),
    )  # fmt: skip


def command(arguments, **environment):
    """Run it; its failure ends the bench."""
    run = subprocess.run(arguments, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True)
    if run.returncode:
        raise SystemExit(f"{' '.join(arguments)} failed with exit code {run.returncode}: {run.stdout[-300:]}")
