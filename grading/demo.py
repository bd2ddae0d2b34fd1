"""`python -m grading.demo`: check the sample submissions, show the table, let the right one write text."""

import json
import os
import runpy
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from grading.stubs import ROOT

SAMPLES = ("all_right", "five_mistakes", "half_finished")
PROMPT = "The capital of France is"
WEEK = runpy.run_path(str(ROOT / "tests" / "parts.py"))  # the parts in their order, core and depth
CELL = 22


class DemoError(Exception):
    """The demo can't go on; the message is one sentence."""


def check(sample):
    """The report of the named tests on one sample submission: a list of tests, see tests/conftest.py."""
    folder = f"grading/samples/{sample}"
    with tempfile.TemporaryDirectory() as room:
        report = Path(room) / "report.json"
        run = subprocess.run(
            [sys.executable, "-m", "pytest", "tests", "-q", "-p", "no:cacheprovider", "--report", str(report)],
            cwd=ROOT, env={**os.environ, "NANOLM_IMPL": folder}, capture_output=True, text=True, encoding="utf-8",
        )  # fmt: skip
        if run.returncode not in (0, 1) or not report.is_file():  # 1: some tests are not passed
            last = (run.stderr.strip() or run.stdout.strip() or "no output").splitlines()[-1]
            raise DemoError(f"The tests did not run on {folder} (pytest's exit code {run.returncode}): {last}")
        return json.loads(report.read_text(encoding="utf-8"))["tests"]


def standing(tests):
    """Points and state of some tests, as in "14/20 3 wrong"."""
    points = f"{_sum(t for t in tests if t['outcome'] == 'passed')}/{_sum(tests)}"
    wrong = sum(test["outcome"] == "failed" for test in tests)
    outcomes = {test["outcome"] for test in tests}
    if wrong:
        state = f"{wrong} wrong"
    elif "not started" in outcomes:
        state = "not started" if "passed" not in outcomes else "in progress"
    else:
        state = "waiting" if "waiting" in outcomes else "passed"
    return f"{points:>7} {state}"


def table(reports):
    """{sample: tests} as lines of text: a row for each part, a column for each sample."""
    yield _row("part", reports)
    yield "-" * (12 + CELL * len(reports))
    for kind in ("CORE", "DEPTH"):
        parts = [part for part in WEEK[kind] if any(_of(tests, (part,)) for tests in reports.values())]
        for part in parts:
            yield _row(part, (standing(_of(tests, (part,))) for tests in reports.values()))
        title = "core" if kind == "CORE" else "bonus"
        yield _row(f"= {title}", (standing(_of(tests, parts)).split()[0].rjust(7) for tests in reports.values()))
        yield ""


def mistakes(tests):
    """One line a part with red tests: the mistakes by name, else the tests that found them."""
    for part in WEEK["PARTS"]:
        red = [test for test in _of(tests, (part,)) if test["outcome"] == "failed"]
        if red:
            found = {test["mistake"]: None for test in red if test["mistake"]} or {test["name"]: None for test in red}
            yield f"  {part:<12}{red[0]['message']}"
            yield from (f"  {'':<12}- {name}" for name in found)


def _of(tests, parts):
    return [test for test in tests if test["part"] in parts]


def _sum(tests):
    return sum(test["points"] for test in tests)


def _row(title, cells):
    return (f"{title:<12}" + "".join(f"{cell:<{CELL}}" for cell in cells)).rstrip()


def main():
    """Check, show, generate; the exit code is 0 where every step worked."""
    reports = {}
    for sample in SAMPLES:
        start = time.monotonic()
        print(f"Checking grading/samples/{sample} ...", end=" ", flush=True)
        reports[sample] = check(sample)
        print(f"{len(reports[sample])} tests, {time.monotonic() - start:.0f} s")
    print("", *table(reports), sep="\n")
    for sample, tests in reports.items():
        found = list(mistakes(tests))
        print(f"Mistakes found in {sample}:" + ("" if found else " none"), *found, sep="\n")
    print("\nThe code of all_right runs SmolLM2-135M:", flush=True)
    command = ["-m", "nanolm", "generate", "--impl", f"grading/samples/{SAMPLES[0]}", "--prompt", PROMPT]
    return subprocess.run([sys.executable, *command], cwd=ROOT).returncode


if __name__ == "__main__":
    try:
        sys.exit(main())
    except DemoError as error:
        print()
        sys.exit(str(error))
