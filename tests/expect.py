"""Assertions that speak to a student: symptom, expected and got, the usual cause as a question.

One number or shape each, never an array. `close` notes how far every comparison was from its
tolerance in `MEASURED`, so that the course team can prove the tolerances.
"""

import ast

import torch

from nanolm.subject import StudentError

MEASURED = []  # (largest difference, tolerance) of each `close` of the test that runs


class Mistake(AssertionError):
    """A named test found something wrong."""

    def __init__(self, symptom, expected=None, got=None, cause=None):
        super().__init__(symptom)
        self.symptom, self.expected, self.got, self.cause = symptom, expected, got, cause


def that(holds, symptom, cause, expected=None, got=None):
    """A plain condition."""
    if not holds:
        raise Mistake(symptom, expected, got, cause)


def same(got, expected, symptom, cause):
    """Equal values: numbers, names, shapes, types."""
    if type(got) is not type(expected) or got != expected:
        raise Mistake(symptom, expected, got, cause)


def tensor(got, shape, what="the result", dtype=None):
    """A tensor of this shape (and dtype)."""
    if got is None:
        raise Mistake(f"{what} is None", "a tensor", "None", "Is there a return at the end of the function?")
    if not isinstance(got, torch.Tensor):
        raise Mistake(f"{what} is not a tensor", "a tensor", type(got).__name__, "What does your function return?")
    if tuple(got.shape) != tuple(shape):
        raise Mistake(f"{what} has the wrong shape", tuple(shape), tuple(got.shape), "Which axis got lost or moved?")
    if dtype is not None and got.dtype != dtype:
        raise Mistake(f"{what} has the wrong dtype", dtype, got.dtype, "Is the result cast back to the input's dtype?")


def close(got, expected, within, symptom, cause):
    """Every entry within an absolute tolerance. `expected` is a tensor, or a number for a scalar or all entries."""
    if not isinstance(expected, torch.Tensor):
        expected = torch.full(got.shape if isinstance(got, torch.Tensor) else (), float(expected), dtype=torch.float64)
        got = torch.as_tensor(got) if isinstance(got, (int, float)) else got
    tensor(got, expected.shape)
    got, expected = got.double(), expected.double()
    if not bool(torch.isfinite(got).all()):
        MEASURED.append((float("inf"), within))
        bad = "NaN" if bool(torch.isnan(got).any()) else "infinity"
        raise Mistake(f"{symptom} ({bad} came out)", "finite numbers", bad, cause)
    finite(expected, "what it is compared with", cause)  # it may come from the same code: nothing is near NaN
    difference = (got - expected).abs()
    that(difference.numel() > 0, "the result is empty", "Where did its entries go?", "some numbers", "none")
    worst = int(difference.argmax())
    MEASURED.append((float(difference.flatten()[worst]), within))
    if float(difference.flatten()[worst]) > within:
        raise Mistake(symptom, *_numbers(expected.flatten()[worst], got.flatten()[worst]), cause)


def identical(got, expected, symptom, cause):
    """Equal to the last bit."""
    tensor(got, expected.shape)
    if not torch.equal(got, expected):
        worst = int((got.double() - expected.double()).abs().nan_to_num(torch.inf).argmax())
        raise Mistake(symptom, *_numbers(expected.flatten()[worst], got.flatten()[worst]), cause)


def differ(got, other, by, symptom, cause):
    """Two answers that are not the same: somewhere they are more than `by` apart. `other` may be one number.

    What has to stay equal is only worth something in code that can change: this is the other half of such a test.
    """
    tensor(got, other.shape if isinstance(other, torch.Tensor) else got.shape)
    moves = float((got.double() - other).abs().max()) if got.numel() else 0.0
    that(moves > by, symptom, cause, "a change", f"{moves:.2g}")


def finite(value, what, cause):
    """A tensor without NaN and infinity."""
    that(value is not None, f"{what} is missing", cause)
    bad = "NaN" if bool(torch.isnan(value).any()) else "infinity"
    that(bool(torch.isfinite(value).all()), f"{what} is not finite", cause, "finite numbers", bad)


def stays_on_meta(work, shape):
    """Code that makes its own tensors on the CPU fails on the meta device, as it would on a GPU."""
    cause = "Is every tensor that you make inside put on the input's device (device=x.device)?"
    try:
        result = work()
    except StudentError as error:
        looks_at_a_value = "meta tensors" in error.message and "item" in error.message
        if looks_at_a_value or error.kind == "NotImplementedError":
            return  # it works on a GPU and can't work here, without data, so it proves nothing
        raise Mistake("on another device your code fails", got=error.message, cause=cause) from error
    tensor(result, shape)
    same(result.device.type, "meta", "the result left the input's device", cause)


def avoids(source, file, ready_made, cause):
    """Source text that takes none of these ready-made parts from torch, by an import or as an attribute of a module."""
    tree = ast.parse(source)
    for name in _taken_from_torch(tree):
        that(name not in ready_made, f"{file} uses torch's ready-made {name}, which is the exercise itself", cause)


def _taken_from_torch(tree):
    """Names that a file imports from torch, and attributes of what it has imported: of nn in nn.RMSNorm, of no self."""
    modules = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            package = "." * node.level + (node.module or "") + "." if isinstance(node, ast.ImportFrom) else ""
            for alias in node.names:
                if (package + alias.name).split(".")[0] == "torch":
                    modules.add((alias.asname or alias.name).split(".")[0])
                    yield alias.name
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            root = node.value
            while isinstance(root, ast.Attribute):
                root = root.value
            if isinstance(root, ast.Name) and root.id in modules:
                yield node.attr


def raises(kind, work, symptom, cause):
    """`work` makes student code raise an exception of this type name."""
    try:
        work()
    except StudentError as error:
        if error.kind == kind:
            return
        raise Mistake(symptom, kind, error.kind, cause) from error
    raise Mistake(symptom, kind, "no exception", cause)


def _numbers(*values):
    """Numbers as text, with as many digits as it takes to tell them apart."""
    for digits in (6, 9, 17):
        texts = [f"{float(value):.{digits}g}" for value in values]
        if len(set(texts)) == len(texts):
            break
    return texts
