"""Stored right answers: inputs and weights as they go in, answers as they come out in fp64."""

from functools import cache
from pathlib import Path

from safetensors.torch import load_file

FOLDER = Path(__file__).parent.parent / "golden"


@cache
def _read(path):
    return load_file(path)


def stored(name):
    """The tensors of golden/NAME.safetensors by name. Don't change them in place: they are shared."""
    return _read(FOLDER / f"{name}.safetensors")
