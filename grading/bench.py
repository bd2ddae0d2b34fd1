"""Ratios that this project claims, each against a peer in the same run: `python -m grading.bench NAME`.

Whole commands are timed in turn, A B A B, and the medians compared, so that a machine whose speed
drifts does not decide. Figures are wall seconds.
"""

import argparse
import os
import platform
import statistics
import subprocess
import sys
import time

from grading.patches import ROOT

PYTHON = sys.executable


def test_loop(runs):
    """The week's tests on the reference against the bare import of torch and pytest."""
    return paired(
        runs,
        ([PYTHON, "-m", "pytest", "tests", "-q"], {"NANOLM_IMPL": "reference"}),
        ([PYTHON, "-c", "import torch, pytest"], {}),
    )


BENCHES = {"tests": test_loop}


def paired(runs, a, b):
    """Seconds of command a and command b, run in turn after one warm-up each: two lists."""
    for command in (a, b):
        timed(*command)
    pairs = [(timed(*a), timed(*b)) for _ in range(runs)]
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def timed(command, environment):
    """Wall seconds of one command; its failure ends the bench."""
    start = time.perf_counter()
    run = subprocess.run(command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True)
    seconds = time.perf_counter() - start
    if run.returncode:
        raise SystemExit(f"{' '.join(command)} failed with exit code {run.returncode}: {run.stdout[-300:]}")
    return seconds


def report(name, a, b):
    """Lines with both medians and the median of the ratios pair by pair."""
    ratios = [x / y for x, y in zip(a, b, strict=True)]
    yield f"{name}: {BENCHES[name].__doc__}"
    for label, figures in (("A seconds", a), ("B seconds", b), ("A / B", ratios)):
        low, middle, high = min(figures), statistics.median(figures), max(figures)
        yield f"  {label:<10} median {middle:7.3f}   min {low:7.3f}   max {high:7.3f}   of {len(figures)} runs"


def main(argv=None):
    """Run the benches that were named, or all."""
    parser = argparse.ArgumentParser(prog="python -m grading.bench", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one or more of {', '.join(BENCHES)}; all if none")
    parser.add_argument("--runs", type=int, default=5, help="pairs of runs after the warm-up")
    args = parser.parse_args(argv)
    unknown = [name for name in args.names if name not in BENCHES]
    if unknown or args.runs < 1:
        parser.error(f"choose from {', '.join(BENCHES)} and at least 1 run")
    print(f"machine: {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    for name in args.names or BENCHES:
        print(*report(name, *BENCHES[name](args.runs)), sep="\n")


if __name__ == "__main__":
    main()
