"""Run the week's tests on many implementations: forked from one process that has imported torch.

A cold pytest spends two seconds on imports and half a second to collect; a fork starts with both. One run a
process, so that nothing is shared between implementations.
"""

import argparse
import contextlib
import gc
import importlib
import multiprocessing
import os
import time
from functools import cache
from multiprocessing.connection import wait

import pytest
import torch

from grading.lean_pytest import LEAN
from grading.paths import ROOT
from machinery import parts
from nanolm import impl
from nanolm.asking.subject import Subject, seed_student_code

FORK = multiprocessing.get_context("fork")

DEADLINE = 300  # seconds for one run; it takes about one


FILES = [f"tests/{name}" for name in parts.ASKS]


class RunError(Exception):
    """A run of the tests gave no report; the message is one sentence."""


def files_that_ask(*changed):
    """The test files that ask one of these files of an implementation; no other can tell a change in them."""
    modules = {file.removesuffix(".py") for file in changed}
    return [f"tests/{name}" for name, asked in parts.ASKS.items() if modules & set(asked)]


def reports(folders, arguments=lambda key: ("tests",), jobs=2):
    """Yield (key, tests) for each of {key: folder} as they are done, with a RunError for a run without a report.

    The tests are entries of tests/conftest.py. `arguments` gives pytest's for each key, as far as _options reads them.
    """
    os.chdir(ROOT)
    tests, waiting, running = _collected(), list(reversed(folders.items())), {}

    def begin_more():
        while waiting and len(running) < jobs:
            key, folder = waiting.pop()
            run = _Run(tests, key, folder, arguments(key))
            running[run.receiver] = run

    try:
        begin_more()
        while running:
            seconds = max(0, min(run.deadline for run in running.values()) - time.monotonic())
            ready = wait(running, seconds) or [min(running, key=lambda receiver: running[receiver].deadline)]
            for receiver in ready:
                run = running.pop(receiver)
                result = run.result()
                begin_more()  # before the caller has worked with this one
                yield run.key, result
    finally:
        for run in running.values():
            run.end()


class _Run:
    """One run in a child process. All are forked by one thread: what another holds at a fork stays locked in it."""

    def __init__(self, tests, key, folder, words):
        self.key, self.folder, self.deadline = key, folder, time.monotonic() + DEADLINE
        self.receiver, sender = FORK.Pipe(duplex=False)
        self._child = FORK.Process(target=_send_report, args=(sender, tests, folder, words))
        self._child.start()
        sender.close()

    def result(self):
        """Its report, or a RunError; then it is over."""
        try:
            late = not self.receiver.poll()
            return RunError(f"the tests on {self.folder} took too long") if late else self.receiver.recv()
        except EOFError:
            return RunError(f"the tests on {self.folder} ended without a report")
        finally:
            self.end()

    def end(self):
        self._child.kill()
        self._child.join()


class _Collected:
    """A pytest plugin that keeps the tests that were collected, to be run later on any implementation."""

    def __init__(self):
        self.config, self.items = None, []

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config):
        config.implementation = None
        config.new_subject = lambda: Subject(config.implementation)
        self.config = config

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session):
        self.items = session.items
        return True

    def run(self, folder, words):
        """The report of the tests that pytest would run with these arguments on the implementation in `folder`."""
        options = _options(words)
        torch.set_num_threads(options.threads)
        self.config.option.advice_points = options.advice_points
        try:
            self.config.implementation = impl.load(str(folder))
        except impl.ImplementationError as error:
            raise RunError(f"the tests did not run on {folder}: {error}") from None
        self.config.begin(options.draw_seed)
        entries = []
        for item in self.items:
            if options.asks(item.nodeid):
                entries.append(self._run(item))
                if options.exitfirst and entries[-1]["outcome"] not in ("passed", "advice"):
                    break
        if not entries:
            raise RunError(f"the tests did not run on {folder}: none is called {' '.join(words)}")
        names = self.config.naming.explanations()
        return [{**entry, "mistake": names.get(entry["name"])} for entry in entries]

    def _run(self, item):
        seed_student_code()
        student, error = self.config.new_subject(), None
        try:
            item.function(student)
        except Exception as raised:
            error = raised
        return self.config.entry_of(item, student, error)


def _options(words):
    """pytest's arguments, as far as a run here needs them: files and tests by their ids, and these options."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("asked", nargs="*")
    parser.add_argument("-x", dest="exitfirst", action="store_true")
    parser.add_argument("--ignore", action="append", default=[])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--draw-seed", type=int, default=0)
    parser.add_argument("--advice-points", type=int, default=0)
    options = parser.parse_args(words)

    def among(paths, nodeid):
        return any(nodeid == path or nodeid.startswith((f"{path}::", f"{path}/")) for path in paths)

    options.asks = lambda nodeid: among(options.asked, nodeid) and not among(options.ignore, nodeid)
    return options


def _send_report(sender, tests, folder, words):
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    try:
        sender.send(tests.run(folder, words))
    except RunError as error:
        sender.send(error)


@cache
def _collected():
    """All tests of the week, collected once, with what every run needs: no student code, and no parallel work."""
    torch.set_num_threads(1)
    for module in ("sympy", "torch._dynamo"):  # the meta device's kernels ask for it
        importlib.import_module(module)
    found = _Collected()
    with open(os.devnull, "w", encoding="utf-8") as nowhere, contextlib.redirect_stdout(nowhere):
        code = pytest.main([*LEAN, "--rootdir", str(ROOT), "tests"], plugins=[found])
    if not found.items:
        raise RunError(f"the tests could not be collected (exit code {int(code)})")
    from machinery import judge, naming

    judge.all_tests()
    naming.read_fingerprints()
    gc.freeze()  # a child need not look through what it was born with
    return found
