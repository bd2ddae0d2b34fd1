"""Run the week's tests on many implementations: forked from one process that has imported torch.

A cold pytest spends two seconds on imports; a fork starts with them. One run a process, so that
nothing is shared between implementations.
"""

import gc
import json
import multiprocessing
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from grading.patches import ROOT

FORK = multiprocessing.get_context("fork")

# What these say belongs to the machine, and they need the code in their own process.
WITHOUT_CLOCK = "--ignore=tests/test_timing_cuda.py"
# pytest's own reporting is not needed: without it a run takes a third less time.
WITHOUT = ("cacheprovider", "terminalreporter", "logging", "unraisableexception", "threadexception", "warnings",
           "faulthandler", "junitxml", "doctest", "capture")
LEAN = (
    *("-q", "--assert=plain", "--disable-plugin-autoload", WITHOUT_CLOCK),
    *(word for name in WITHOUT for word in ("-p", f"no:{name}")),
)
DEADLINE = 300  # seconds for one run; it takes about one


class RunError(Exception):
    """A run of the tests gave no report; the message is one sentence."""


def report_of(folder, arguments):
    """The report of the named tests on the implementation in `folder`, see tests/conftest.py. Forks nothing."""
    import pytest

    with tempfile.TemporaryDirectory() as room:
        report, output = Path(room) / "report.json", Path(room) / "output.txt"
        os.environ["NANOLM_IMPL"] = str(folder)
        with output.open("w", encoding="utf-8") as stream:
            os.dup2(stream.fileno(), 1)
            os.dup2(stream.fileno(), 2)
            code = pytest.main([*LEAN, f"--report={report}", *arguments])
        if code not in (0, 1) or not report.is_file():
            last = output.read_text(encoding="utf-8").strip().splitlines() or ["no output"]
            raise RunError(f"the tests did not run on {folder} (exit code {int(code)}): {last[-1]}")
        return json.loads(report.read_text(encoding="utf-8"))["tests"]


def reports(folders, arguments=lambda key: ("tests",), jobs=2):
    """Yield (key, tests) for each of {key: folder} as they are done, with a RunError for a run without a report.

    `arguments` gives pytest's for each key.
    """
    _import_once()
    os.chdir(ROOT)
    with ThreadPoolExecutor(jobs) as pool:
        futures = {pool.submit(_in_a_fork, folder, arguments(key)): key for key, folder in folders.items()}
        for future in as_completed(futures):
            yield futures[future], future.result()


def _in_a_fork(folder, arguments):
    """The run in a child process of its own: its report, or a RunError."""
    receiver, sender = FORK.Pipe(duplex=False)
    child = FORK.Process(target=_send_report, args=(sender, folder, arguments))
    child.start()
    sender.close()
    try:
        result = receiver.recv() if receiver.poll(DEADLINE) else RunError(f"the tests on {folder} took too long")
    except EOFError:
        result = RunError(f"the tests on {folder} ended without a report")
    child.kill()
    child.join()
    return result


def _send_report(sender, folder, arguments):
    try:
        sender.send(report_of(folder, arguments))
    except RunError as error:
        sender.send(error)


def _import_once():
    """What every run needs, imported before the forks: no student code, and no parallel work."""
    import sympy  # noqa: F401
    import torch

    torch.set_num_threads(1)
    import torch._dynamo  # noqa: F401  the meta device's kernels ask for it

    import judge

    judge.all_tests()  # with all test files
    gc.freeze()  # a child need not look through what it was born with
