"""Two pieces of work timed in turn, A B A B, on any device: medians, and the median of the pairs' ratios.

On a GPU the clock is the device's own (CUDA events); elsewhere it is the wall's.
"""

import math
import os
import platform
import statistics
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import torch

WARM_UP = 3  # calls: the first ones choose kernels and fill tables that are kept


@dataclass(frozen=True)
class Row:
    """How long A and B took, and what was expected of B / A. `gate` is the least ratio that counts as fast."""

    name: str
    a: str
    b: str
    a_seconds: float
    b_seconds: float
    ratio: float  # B / A, the median over the pairs
    expected: str
    gate: float | None = None
    note: str = ""

    @property
    def is_fast(self):
        return self.gate is None or self.ratio >= self.gate


@dataclass(frozen=True)
class Clock:
    """`pairs` measurements of each, of at least `shortest` seconds: shorter work is repeated."""

    device: torch.device
    pairs: int = 9
    shortest: float = 0.005

    @torch.no_grad()
    def row(self, name, a, b, expected, gate=None, note=lambda seconds: ""):
        """The Row of two (label, work) pairs; `note` says something about A's seconds."""
        (a_label, a_work), (b_label, b_work) = a, b
        repeats = [self._repeats(work) for work in (a_work, b_work)]
        times = [(self._seconds(a_work, repeats[0]), self._seconds(b_work, repeats[1])) for _ in range(self.pairs)]
        a_seconds, b_seconds = (statistics.median(side) for side in zip(*times, strict=True))
        ratio = statistics.median(second / first for first, second in times)
        return Row(name, a_label, b_label, a_seconds, b_seconds, ratio, expected, gate, note(a_seconds))

    def _repeats(self, work):
        for _ in range(WARM_UP):
            work()
        return max(1, math.ceil(self.shortest / max(self._seconds(work, 1), 1e-6)))

    def _seconds(self, work, repeats):
        if self.device.type != "cuda":
            start = time.perf_counter()
            for _ in range(repeats):
                work()
            return (time.perf_counter() - start) / repeats
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize(self.device)  # nothing older runs inside the measurement
        begin.record()
        for _ in range(repeats):
            work()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / 1000 / repeats  # it counts milliseconds


def table(rows):
    """Lines of text: a line for each Row."""
    yield f"{'':<28}{'A ms':>10}{'B ms':>10}{'B / A':>8}  what"
    for row in rows:
        gate = "" if row.gate is None else f" (at least {row.gate:g}: {'yes' if row.is_fast else 'NO'})"
        note = f"; {row.note}" if row.note else ""
        yield (
            f"{row.name:<28}{row.a_seconds * 1000:>10.3f}{row.b_seconds * 1000:>10.3f}{row.ratio:>8.2f}"
            f"  A {row.a}, B {row.b}: expected {row.expected}{gate}{note}"
        )


def machine(device="cpu"):
    """The machine in words: a GPU with its clocks at this moment, or the processor and its cores."""
    device = torch.device(device)
    if device.type == "cuda":
        return f"{torch.cuda.get_device_name(device)}, {_gpu_clocks()}, torch {torch.__version__}"
    return f"{_processor()}, {os.cpu_count()} cores, Python {platform.python_version()}, torch {torch.__version__}"


def _gpu_clocks():
    fields = ("clocks.sm", "clocks.mem", "clocks.max.sm", "power.draw")
    command = ["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader", "--id=0"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return "clocks unknown (no nvidia-smi)"
    return ", ".join(f"{name} {value}" for name, value in zip(fields, said.strip().split(", "), strict=False))


def _processor():
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.is_file() else []
    named = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()
