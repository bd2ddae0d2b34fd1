"""Python code in a normal form: what is left of it when names, layout and spelling don't count.

A piece of code becomes a stream of small trees, a statement each. In a tree every name of a program's
own (`x`, `self.weight`, `cfg.D`) is a variable, written by its first appearance; what torch and the
week's contract call something stays. So a copy keeps its form where its variables are renamed, where a
method becomes a function (`x.pow(2)`, `torch.pow(x, 2)`), where factors change their places, where a result
gets a name before it is returned, and where imports, annotations, comments or docstrings come and go.
"""

import ast
import warnings
from dataclasses import dataclass
from functools import cache

import torch

from nanolm.impl import CONTRACT

OURS = {name for names in CONTRACT.values() for name in names}
LETTERS = set("BLTSVDHFNKG")  # the course's notation: cfg.H is a number, and no method of a tensor
MODULES = {"torch", "nn", "functional", "F", "math"}
COMMUTES = {ast.Add: "+", ast.Mult: "*", ast.BitAnd: "&", ast.BitOr: "|"}
MIRRORED = {ast.Gt: "Lt", ast.GtE: "LtE"}
SILENT = {"variable", "set", "Tuple", "List", "call", "part", "slice", ".shape", "for", "If", "with"}
KNOWN = (
    {name for place in (torch, torch.Tensor, torch.nn.functional) for name in dir(place) if name[0] != "_"} - LETTERS
) | OURS


@dataclass(frozen=True)
class Step:
    """One statement of a stream, and the line that it begins on."""

    tree: tuple
    line: int


def parse(text):
    """The syntax tree of a text, or None where it is not Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # prose is full of backslashes
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def stream(tree, first_line=1):
    """The statements of a syntax tree in order: Steps, and None where a function or class begins or ends."""
    modules = MODULES | {
        (alias.asname or alias.name).split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    return list(_steps(tree.body, modules, first_line - 1))


@cache
def weight(tree):
    """How many names, numbers and operations a tree holds."""
    return 1 + sum(weight(child) for child in tree[1:] if isinstance(child, tuple))


@cache
def content(tree):
    """How many of these say something: names of torch, operators and numbers, not variables and brackets."""
    inner = sum(content(child) for child in tree[1:] if isinstance(child, tuple))
    return inner + (tree[0] not in SILENT)


def text_of(*trees):
    """Trees as text; variables are numbered in the order in which they appear in all of them."""
    names = {}
    return "; ".join(_text(tree, names) for tree in trees)


def parts_of(tree):
    """The tree and every tree inside it."""
    yield tree
    for child in tree[1:]:
        if isinstance(child, tuple):
            yield from parts_of(child)


def _text(tree, names):
    kind, *rest = tree
    if kind == "variable":
        return "_" if names is None else f"v{names.setdefault(rest[0], len(names))}"
    return f"{kind}({', '.join(_text(child, names) if isinstance(child, tuple) else str(child) for child in rest)})"


def _steps(body, modules, shift):
    for node in body:
        line = node.lineno + shift
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield None
            yield from _steps(node.body, modules, shift)
            yield None
            continue
        yield from (Step(tree, line) for tree in _trees(node, modules))
        for block in ("body", "handlers", "orelse", "finalbody"):
            inner = getattr(node, block, [])
            for part in inner:
                yield from _steps(part.body if isinstance(part, ast.ExceptHandler) else [part], modules, shift)


def _trees(node, modules):
    """What one statement says by itself, without the statements inside it."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _set(target, node.value, modules)
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        yield from _set(node.target, node.value, modules)
    elif isinstance(node, ast.AugAssign):
        yield from _set(node.target, ast.BinOp(node.target, node.op, node.value), modules)
    elif isinstance(node, (ast.Return, ast.Expr)):
        if node.value is not None and not isinstance(node.value, (ast.Name, ast.Constant)):
            yield from _set(ast.Name("result", ast.Store()), node.value, modules)
    elif isinstance(node, ast.For):
        yield ("for", _form(node.target, modules), _form(node.iter, modules))
    elif isinstance(node, (ast.If, ast.While, ast.Assert)):
        yield (type(node).__name__, _form(node.test, modules))
    elif isinstance(node, ast.With):
        yield ("with", *(_form(item.context_expr, modules) for item in node.items))


def _set(target, value, modules):
    both = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
    if both and len(target.elts) == len(value.elts):  # a, b = c, d is two statements
        for one, other in zip(target.elts, value.elts, strict=True):
            yield from _set(one, other, modules)
    else:
        yield ("set", _form(target, modules), _form(value, modules))


def _form(node, modules):
    kind = type(node).__name__
    if isinstance(node, ast.Name):
        return ("variable", node.id)
    if isinstance(node, ast.Constant):
        return ("constant", _constant(node.value))
    if isinstance(node, ast.Attribute):
        return _attribute(node, modules)
    if isinstance(node, ast.Call):
        return _call(node, modules)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        return ("constant", f"-{_constant(node.operand.value)}")
    if isinstance(node, ast.BinOp) and type(node.op) in COMMUTES:
        operands = [_form(operand, modules) for operand in _chain(node, type(node.op))]
        return (COMMUTES[type(node.op)], *sorted(operands, key=lambda tree: _text(tree, None)))
    if isinstance(node, (ast.BinOp, ast.UnaryOp)):
        kind = type(node.op).__name__
    if isinstance(node, ast.Slice):
        ends = {"from": node.lower, "to": node.upper, "step": node.step}
        given = {name: end for name, end in ends.items() if end is not None}
        return ("slice", "-".join(given), *(_form(end, modules) for end in given.values()))
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        sides, sign = [node.left, node.comparators[0]], type(node.ops[0])
        if sign in MIRRORED:
            sides.reverse()
        return (MIRRORED.get(sign, sign.__name__), *(_form(side, modules) for side in sides))
    children = (child for child in ast.iter_child_nodes(node) if isinstance(child, (ast.expr, ast.comprehension)))
    return (kind, *(_form(child, modules) for child in children))


def _constant(value):
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return repr(float(value)) if is_number and abs(value) < 1e300 else repr(value)


def _attribute(node, modules):
    path = _path(node)
    if node.attr in KNOWN and path and path.split(".")[0] in modules:  # torch.float32
        return ("name", node.attr)
    if node.attr in KNOWN:
        return (f".{node.attr}", _form(node.value, modules))
    return ("variable", path) if path else ("part", _form(node.value, modules))


def _call(node, modules):
    function, arguments = node.func, list(node.args)
    name = getattr(function, "attr", getattr(function, "id", None))
    if name not in KNOWN:
        head = ("call", _form(function, modules))
    else:
        path = _path(function)
        free = isinstance(function, ast.Name) or name in OURS or path and path.split(".")[0] in modules
        arguments = arguments if free else [function.value, *arguments]
        head = (name,)
    named = sorted((keyword.arg or "**", _form(keyword.value, modules)) for keyword in node.keywords)
    return (*head, *(_form(argument, modules) for argument in arguments), *((f"{name}=", form) for name, form in named))


def _chain(node, operator):
    if isinstance(node, ast.BinOp) and isinstance(node.op, operator):
        return [*_chain(node.left, operator), *_chain(node.right, operator)]
    return [node]


def _path(node):
    """a.b.c as text, or None where a call or an index stands in it."""
    if isinstance(node, ast.Name):
        return node.id
    inner = _path(node.value) if isinstance(node, ast.Attribute) else None
    return inner and f"{inner}.{node.attr}"
