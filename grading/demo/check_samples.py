"""`python -m grading samples`: check the sample submissions, show the table, let the right one write text."""

import subprocess
import sys
import time

from grading.demo.samples import SAMPLES, folder
from grading.paths import ROOT
from grading.proof.marks import WEEK, NoReport, marks, of_parts, report

HELP = "check the sample submissions, show the table, let the right one write text"
PROMPT = "The capital of France is"
CELL = 22


def check(sample):
    """The report of the named tests on one sample submission."""
    return report(folder(sample))


def standing(tests):
    """Points and state of some tests, as in "14/20 3 wrong"."""
    points = f"{marks(tests).earned}/{marks(tests).possible}"
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
        parts = [part for part in WEEK[kind] if any(of_parts(tests, (part,)) for tests in reports.values())]
        for part in parts:
            yield _row(part, (standing(of_parts(tests, (part,))) for tests in reports.values()))
        title = "core" if kind == "CORE" else "bonus"
        yield _row(f"= {title}", (standing(of_parts(tests, parts)).split()[0].rjust(7) for tests in reports.values()))
        yield ""


def mistakes(tests):
    """One line a part with red tests: the mistakes by name, else the tests that found them."""
    for part in WEEK["PARTS"]:
        red = [test for test in of_parts(tests, (part,)) if test["outcome"] == "failed"]
        if red:
            found = {test["mistake"]: None for test in red if test["mistake"]} or {test["name"]: None for test in red}
            yield f"  {part:<12}{red[0]['message']}"
            yield from (f"  {'':<12}- {name}" for name in found)


def _row(title, cells):
    return (f"{title:<12}" + "".join(f"{cell:<{CELL}}" for cell in cells)).rstrip()


def add_arguments(parser):
    """It takes none."""


def run(args):
    """Check, show, generate; the exit code is 0 where every step worked."""
    try:
        return _run()
    except NoReport as error:
        print(f"\n{error}", file=sys.stderr)
        return 1


def _run():
    reports = {}
    for sample in SAMPLES:
        start = time.monotonic()
        print(f"Checking {folder(sample).relative_to(ROOT).as_posix()} ...", end=" ", flush=True)
        reports[sample] = check(sample)
        print(f"{len(reports[sample])} tests, {time.monotonic() - start:.0f} s")
    print("", *table(reports), sep="\n")
    for sample, tests in reports.items():
        found = list(mistakes(tests))
        print(f"Mistakes found in {sample}:" + ("" if found else " none"), *found, sep="\n")
    print("\nThe code of all_right runs SmolLM2-135M:", flush=True)
    command = ["-m", "nanolm", "generate", "--impl", str(folder("all_right")), "--prompt", PROMPT]
    return subprocess.run([sys.executable, *command], cwd=ROOT).returncode
