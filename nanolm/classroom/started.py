"""The implementation under test in a notebook: named, and with a sentence where it is not written yet."""

import ast
import os
import traceback
from pathlib import Path

import torch

from nanolm import impl
from nanolm.errors import ContractError
from nanolm.model.weights import WeightsError

SENTENCES = (impl.ImplementationError, ContractError, WeightsError)  # their message is the whole story


def active(*names):
    """The implementation that NANOLM_IMPL names, announced; `names` are what this notebook uses of it.

    From here on a cell that meets a stub, or an error in the implementation, shows one sentence
    that says what to do, and the notebook stops there.
    """
    torch.set_num_threads(1)  # the tensors are tiny: more threads only wait for each other
    implementation = impl.load()
    _explain_errors(implementation)
    implementation.check(dict.fromkeys(impl.FILE_OF[name] for name in names))
    print(f"Implementation under test: {implementation.name} ({os.path.relpath(implementation.folder)})")
    for stub in not_started(implementation, names):
        print(f"  {stub} is not started: the notebook runs to the first cell that needs it.")
    return implementation


def not_started(implementation, names):
    """Exercises among `names` whose body still is the stub's raise, e.g. modules.py: RMSNorm.forward."""
    found = []
    for file in dict.fromkeys(impl.FILE_OF[name] for name in names):
        for node in ast.parse(implementation.source(file)).body:
            if getattr(node, "name", None) in names:
                inner = node.body if isinstance(node, ast.ClassDef) else [node]
                for function in inner:
                    if isinstance(function, ast.FunctionDef) and _raises_stub(function):
                        name = node.name if function is node else f"{node.name}.{function.name}"
                        found.append(f"{file}.py: {name}")
    return found


def _raises_stub(function):
    last = function.body[-1]
    return isinstance(last, ast.Raise) and "NotImplementedError" in ast.dump(last)


def sentence_about(error, implementation):
    """One sentence for the student about an exception, or None where the fault is not theirs."""
    if isinstance(error, SENTENCES):
        return str(error)
    frames = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).parent == implementation.folder]
    if not frames:
        return None
    if isinstance(error, NotImplementedError):
        return f"{error}\nWrite it, then come back: Kernel, Restart and run all cells."
    place = f"{Path(frames[-1].filename).name}, line {frames[-1].lineno}, in {frames[-1].name}"
    return (
        f"The implementation under test raised {type(error).__name__}: {error} ({place}).\n"
        f"Do its tests pass? They say more: pytest tests"
    )


def _explain_errors(implementation):
    try:
        from IPython import get_ipython
    except ImportError:
        return
    shell = get_ipython()
    if shell is None:  # a plain Python program
        return

    def explain(shell, kind, error, trace, tb_offset=None):
        sentence = sentence_about(error, implementation)
        if sentence is not None:
            error._render_traceback_ = lambda: sentence.split("\n")
        shell.showtraceback((kind, error, trace), tb_offset=tb_offset)

    shell.set_custom_exc((Exception,), explain)
