"""`python -m grading bench [NAME ...]`: the ratios that this project claims, each against a peer in the same run.

Without a name all of them but cuda, which needs a GPU and has a table of its own.
"""

import datetime
import os
import sys

from grading.paths import ROOT
from grading.proof.bench import classroom, cuda, loop, models, stock
from grading.proof.bench.ratio import table
from nanolm.asking.clock import machine

HELP = "measured ratios, each against a peer in the same run"
BENCHES = {
    "tests": loop.ratios,
    "grading": stock.ratios,
    "models": models.ratios,
    "watch": classroom.watch,
    "notebooks": classroom.notebooks,
}
PAGE = ROOT / "grading" / "proof" / "bench.md"


def add_arguments(parser):
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of {', '.join(BENCHES)}, or cuda alone")
    parser.add_argument("--runs", type=int, default=5, help="pairs of runs after the warm-up")
    parser.add_argument("--write", action="store_true", help=f"keep the table: {PAGE.name}, or {cuda.PAGE.name}")


def run(args):
    """Run the benches that were named, or all; print the table, and keep it where asked."""
    if args.names == ["cuda"]:
        return cuda.run(args.write)
    unknown = [name for name in args.names if name not in BENCHES]
    if unknown or args.runs < 1:
        print(f"Choose from {', '.join(BENCHES)}, or cuda alone, and at least 1 run.", file=sys.stderr)
        return 2
    ratios = []
    for name in args.names or BENCHES:
        for ratio in BENCHES[name](args.runs):
            ratios.append(ratio)
            print(" | ".join(ratio.cells()), file=sys.stderr, flush=True)
    command = " ".join(["python -m grading bench", *args.names, f"--runs {args.runs}"])
    page = [
        "# Measured ratios", "", f"{datetime.date.today()}, {machine()}; load at the end {os.getloadavg()[0]:.1f}.",
        f"`{command}`: A and B in turn, A B A B, medians,", "in wall seconds; the ratio is the median of the pairs.",
        "", *table(ratios),
    ]  # fmt: skip
    print(*page, sep="\n")
    if args.write:
        PAGE.write_text("\n".join([*page, ""]), encoding="utf-8")
    return 0
