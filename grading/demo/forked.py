"""`python -m MODULE ...` forked from this process: what it has imported by then, the command need not import again."""

import importlib
import multiprocessing
import os
import runpy
import subprocess
import sys

CAN_FORK = sys.platform == "linux"  # macOS has a fork that its own libraries do not survive
SHARED = ("nbgrader.apps.nbgraderapp", "grading.week.autograde.wiring")  # most of a nbgrader command's start


def run(command, place, log):
    """The exit code of (python, "-m", module, *words), run in the folder `place` with all that it says in `log`."""
    command = [str(word) for word in command]
    if not CAN_FORK:
        return subprocess.run(command, cwd=place, stdout=log, stderr=log).returncode
    for name in SHARED:
        importlib.import_module(name)
    child = multiprocessing.get_context("fork").Process(target=_run, args=(command[2:], place, log))
    child.start()
    child.join()
    return child.exitcode


def _run(words, place, log):
    for number in (1, 2):
        os.dup2(log.fileno(), number)
    sys.stdout, sys.stderr = (open(number, "w", encoding="utf-8", closefd=False) for number in (1, 2))
    os.chdir(place)
    sys.path[0] = str(place)  # as python -m has it
    sys.argv = words
    runpy.run_module(words[0], run_name="__main__", alter_sys=True)
