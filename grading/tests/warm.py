"""`python ARGUMENTS`, forked from a process that has imported torch and pytest: from cold these take four seconds.

The command itself starts as it would: with its own folder, environment, module path and output. What Python reads
of the environment before it starts (PYTHONUTF8, OMP_NUM_THREADS) needs a cold start.
"""

import atexit
import json
import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
from functools import cache
from multiprocessing.reduction import DupFd
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload(["torch", "pytest", "sympy", "torch._dynamo"])  # the last: for the meta device
PATIENCE = 600  # seconds
CLEAN_PATH = "import json, sys; print(json.dumps(sys.path[1:]))"


def python(*arguments, cwd=ROOT, env=None):
    """`python -m MODULE ...` or `python -c CODE ...`, as subprocess.run gives it, text and both outputs taken."""
    words, env = [str(word) for word in arguments], dict(os.environ if env is None else env)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        pipes = [DupFd(stream.fileno()) for stream in (out, err)]
        child = FORKED.Process(target=_command, args=(words, str(cwd), env, _module_path(), *pipes))
        child.start()
        child.join(PATIENCE)
        if child.is_alive():
            child.kill()
            child.join()
        said = []
        for stream in (out, err):
            stream.seek(0)
            said.append(stream.read().decode("utf-8").replace("\r\n", "\n"))
    return subprocess.CompletedProcess([sys.executable, *words], child.exitcode, *said)


@cache
def _module_path():
    """sys.path as Python sets it, without what pytest and the tests have put there."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    found = subprocess.run([sys.executable, "-c", CLEAN_PATH], env=env, capture_output=True, text=True, check=True)
    return json.loads(found.stdout)


def _command(words, cwd, env, module_path, out, err):
    for number, pipe in ((1, out), (2, err)):
        os.dup2(pipe.detach(), number)
    sys.stdout, sys.stderr = (open(number, "w", encoding="utf-8", closefd=False) for number in (1, 2))
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    sys.path[:] = [cwd, *filter(None, env.get("PYTHONPATH", "").split(os.pathsep)), *module_path]
    kind, named, *rest = words
    sys.argv = [kind, *rest]
    try:
        if kind == "-m":
            runpy.run_module(named, run_name="__main__", alter_sys=True)
        else:
            exec(compile(named, "<string>", "exec"), {"__name__": "__main__"})
    finally:
        atexit._run_exitfuncs()
