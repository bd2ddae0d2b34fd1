"""The table of tests/test_timing_cuda.py for five programs: the reference, torch's fused calls, three slow ones."""

import datetime
import tempfile
from pathlib import Path

import torch

from grading.paths import REFERENCE, ROOT
from grading.proof.bank import SLOW, load_variants, materialise
from nanolm.asking import clock, timing
from nanolm.impl import Implementation

SLOW_ONES = ("slow-loop-over-heads", "slow-written-out-softmax", "slow-weights-in-fp32")
COMMAND = "python -m grading bench cuda --write"
PAGE = ROOT / "grading" / "proof" / "bench_cuda.md"


def programs(room):
    """{name: Implementation} of the five."""
    known = load_variants(Path(__file__).parent) | load_variants(SLOW)
    found = {"reference": Implementation("reference", REFERENCE)}
    for name in ("torch-fused", *SLOW_ONES):
        materialise(REFERENCE, [known[name]], room / name)
        found[name] = Implementation(name, room / name)
    return found


def lines(device, sizes, make_clock=clock.Clock):
    """The machine, then a table for each program, with a word on whether its forward waits."""
    device = torch.device(device)
    yield f"{clock.machine(device)}, {datetime.date.today()}, {COMMAND}"
    with tempfile.TemporaryDirectory() as room:
        for name, implementation in programs(Path(room)).items():
            bench = timing.Bench(implementation, device, sizes, make_clock(device))
            yield ""
            yield name
            yield from clock.table(measurement(bench) for measurement in timing.MEASUREMENTS)
            yield f"{'forward without waiting':<28}{_waits(bench)}"
    yield ""
    yield f"at the end: {clock.machine(device)}"


def run(write):
    """Print the table, and keep it where asked."""
    if not torch.cuda.is_available():
        raise SystemExit("bench cuda needs a CUDA device, and torch finds none here: run it on a GPU machine.")
    said = []
    for line in lines("cuda", timing.LARGE):
        print(line, flush=True)
        said.append(line)
    if write:
        PAGE.write_text("\n".join(["# Times on a GPU", "", "```", *said, "```", ""]), encoding="utf-8")
        print(f"written: {PAGE.relative_to(ROOT)}")


def _waits(bench):
    try:
        timing.forward_without_waiting(bench)
    except RuntimeError as error:
        return f"NO: {str(error).splitlines()[0]}"
    return "yes"
