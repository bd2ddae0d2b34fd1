"""Where student code raised: the line, the tensors in it, and the axis that does not fit.

Only names and attributes of the failing expression are looked up; nothing is called again.
"""

import ast
import linecache
import math
import re
import traceback
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import torch

MOST_NAMES = 6  # of a line, that are shown
LINE_LIMIT = 110
DTYPES = {"float32": "fp32", "float64": "fp64", "float16": "fp16", "bfloat16": "bf16"}  # as the course calls them


@dataclass(frozen=True)
class Scene:
    """What there is to see where code raised; every text is empty where nothing can be said."""

    place: str = ""  # file, line and function
    line: str = ""  # the student's source
    tensors: str = ""  # names in it, with shapes and dtypes
    axis: str = ""  # what does not fit


def scene_of(error, folder):
    """The Scene of an exception in the last frame whose file lies in `folder`."""
    own = [step for step in traceback.walk_tb(error.__traceback__) if folder in _file(step[0]).parents]
    if not own:
        return Scene()
    frame, _ = own[-1]
    tb = next(tb for tb in _chain(error.__traceback__) if tb.tb_frame is frame)
    place = f"{_file(frame).relative_to(folder).as_posix()}, line {tb.tb_lineno}, in {frame.f_code.co_name}"
    begin, end, left, right = next(islice(frame.f_code.co_positions(), tb.tb_lasti // 2, None), (None,) * 4)
    begin, end = begin or tb.tb_lineno, end or tb.tb_lineno
    lines = [linecache.getline(frame.f_code.co_filename, number).rstrip("\n") for number in range(begin, end + 1)]
    line = _cut(" ".join(text.strip() for text in lines))
    node = _expression(lines, left, right) or _statement(line)
    held = _held(node, frame) if node is not None else {}
    if node is not None and not any(isinstance(value, torch.Tensor) for value in held.values()):
        held = _held(_statement(line), frame)
    shown = [f"{name} {_look(value)}" for name, value in islice(held.items(), MOST_NAMES)]
    return Scene(place, line, ", ".join(shown), _misfit(str(error), node, held))


def _chain(tb):
    while tb is not None:
        yield tb
        tb = tb.tb_next


def _file(frame):
    return Path(frame.f_code.co_filename)


def _cut(text):
    return text if len(text) <= LINE_LIMIT else text[:LINE_LIMIT] + " ..."


def _expression(lines, left, right):
    """The failing expression, as its columns tell (they count bytes)."""
    if not lines or left is None or right is None:
        return None
    raw = [line.encode() for line in lines]
    raw[-1] = raw[-1][:right]
    raw[0] = raw[0][left:]
    try:
        return ast.parse(b"(" + b"\n".join(raw) + b")", mode="eval").body
    except (SyntaxError, ValueError):
        return None


def _statement(line):
    for text in (line, f"{line} pass", line.removesuffix(":")):
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError):
            continue
    return None


def _held(node, frame):
    """Name -> value of the tensors, sizes and missing results that an expression names, in its order."""
    found = {}
    for part in _names(node) if node is not None else ():
        try:
            holder, value = _value(part, frame)
        except Exception:  # the name that is missing may be what was raised
            continue
        name = ast.unparse(holder)
        if isinstance(value, torch.nn.Module):
            name, value = f"{name}.weight", getattr(value, "weight", ...)
        if value is None or isinstance(value, torch.Tensor) or type(value) is int:
            found[name] = value
    tensors = {name: value for name, value in found.items() if type(value) is not int}
    return tensors | found


def _names(node):
    """Names and dotted names, the outermost of each, from left to right."""
    if isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and _is_dotted(node)):
        yield node
        return
    for child in ast.iter_child_nodes(node):
        yield from _names(child)


def _is_dotted(node):
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def _value(node, frame):
    """The value of a name, and the node that holds it: a tensor's own attributes and methods lead to the tensor."""
    if isinstance(node, ast.Name):
        return node, frame.f_locals[node.id]
    held, value = _value(node.value, frame)
    if isinstance(value, torch.Tensor):
        return held, value
    return node, getattr(value, node.attr)


def _look(value):
    """A tensor's shape and dtype, or a number."""
    if value is None:
        return "is None"
    if type(value) is int:
        return f"= {value}"
    dtype = str(value.dtype).removeprefix("torch.")
    where = "" if value.device.type == "cpu" else f" on {value.device.type}"
    return f"{tuple(value.shape)} {DTYPES.get(dtype, dtype)}{where}"


# What torch says of sizes that do not fit, and how to say which axis it is.
BROADCAST = re.compile(r"size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\) at .*dimension (\d+)")
MATRICES = re.compile(r"mat1 and mat2 shapes cannot be multiplied \((\d+)x(\d+) and (\d+)x(\d+)\)")
BATCHED = re.compile(r"first two dimensions of batch2 tensor to be: \[(\d+), (\d+)\] but got: \[(\d+), (\d+)\]")
RESHAPED = re.compile(r"shape '\[([-\d, ]+)\]' is invalid for input of size (\d+)")
EXPANDED = re.compile(
    r"expanded size of the tensor \((\d+)\) must match the existing size \((\d+)\) at .*dimension (\d+)"
)


def _misfit(message, node, held):
    left, right = _sides(node)
    if found := BROADCAST.search(message):
        a, b, axis = map(int, found.groups())
        ranks = [held[side].dim() for side in (left, right) if isinstance(held.get(side), torch.Tensor)]
        where = f"axis {axis - max(ranks)}" if len(ranks) == 2 else f"axis {axis}"
        return f"{where}: {a} in {left or 'the left one'}, {b} in {right or 'the right one'}"
    if found := MATRICES.search(message):
        _, inner, rows, columns = map(int, found.groups())
        turned = ": is one of them to be transposed?" if inner == columns else ""
        return f"the left one's last axis is {inner}, the right one takes {rows}{turned}"
    if found := BATCHED.search(message):
        batch, inner, other_batch, other = map(int, found.groups())
        if batch == other_batch:
            return f"last axis of {left or 'the left one'}: {inner}, axis -2 of {right or 'the right one'}: {other}"
        return f"axes before the last two: {batch} on the left, {other_batch} on the right"
    if found := RESHAPED.search(message):
        asked = [int(size) for size in found[1].split(",")]
        known = math.prod(size for size in asked if size > 0)
        rest = " without the -1" if -1 in asked else ""
        return f"the sizes asked for multiply to {known:,}{rest}, the tensor has {int(found[2]):,} numbers"
    if found := EXPANDED.search(message):
        return f"axis {found[3]}: {found[1]} wanted, {found[2]} there"
    return ""


def _sides(node):
    """The two sides of a product or sum as they stand there; empty where it is no such expression."""
    pair = (node.left, node.right) if isinstance(node, ast.BinOp) else ()
    if isinstance(node, ast.Call) and len(node.args) == 2 and ast.unparse(node.func) in ("torch.matmul", "torch.bmm"):
        pair = node.args
    texts = [ast.unparse(side) for side in pair]
    return tuple(text if len(text) <= 40 else "" for text in texts) or ("", "")
