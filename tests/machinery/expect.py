"""Assertions that speak to a student: symptom, expected and got, the usual cause as a question.

One number or shape each; a tensor only where it is small enough to be read, with the entries marked
that differ. `close` notes how far every comparison was from its tolerance in `MEASURED`, so that the
course team can prove the tolerances.
"""

import math

import torch

from nanolm.answers import Foreign
from nanolm.asking.subject import Outcome
from nanolm.errors import StudentError

MEASURED = []  # (largest difference, tolerance) of each `close` of the test that runs
SMALL = 8  # entries of a tensor that is shown whole
NEAR = 1e-2  # a difference of less than this share of the largest number is said to be a near miss

WHOLE = "What does a whole number or True stand for here?"


class Mistake(AssertionError):
    """A named test found something wrong. `digits` are those that are right, of a result that is nearly right."""

    def __init__(self, symptom, expected=None, got=None, cause=None, digits=None):
        super().__init__(symptom)
        self.symptom, self.expected, self.got, self.cause, self.digits = symptom, expected, got, cause, digits


def that(holds, symptom, cause, expected=None, got=None):
    """A plain condition."""
    if not holds:
        raise Mistake(symptom, expected, got, cause)


def same(got, expected, symptom, cause):
    """Equal values: numbers, names, shapes, types."""
    if type(got) is not type(expected) or got != expected:
        if isinstance(got, list) and isinstance(expected, list) and len(got) == len(expected) <= SMALL:
            differs = [a != b for a, b in zip(got, expected, strict=True)]
            if all(isinstance(value, (int, float)) for value in (*got, *expected)):
                expected, got = _side_by_side(expected, got, differs, (len(got),))
        raise Mistake(symptom, expected, got, cause)


def tensor(got, shape, what="the result", dtype=None, real=True):
    """A tensor of this shape, of real numbers or of this dtype; of any where `real` is false."""
    if got is None:
        raise Mistake(f"{what} is None", "a tensor", "None", "Is there a return at the end of the function?")
    if isinstance(got, Foreign) and got.name.endswith("tensor"):
        raise Mistake(f"{what} is a {got.name}", "real numbers in a plain tensor", got.name, "Is a step back missing?")
    if not isinstance(got, torch.Tensor):
        raise Mistake(f"{what} is not a tensor", "a tensor", type(got).__name__, "What does your function return?")
    if dtype is None and real and not got.is_floating_point():
        raise Mistake(f"{what} holds no real numbers", "a floating dtype", got.dtype, WHOLE)
    if tuple(got.shape) != tuple(shape):
        raise Mistake(f"{what} has the wrong shape", tuple(shape), tuple(got.shape), _of_shapes(shape, got.shape))
    if dtype is not None and got.dtype != dtype:
        cause = "Does it hold True and False, as a comparison gives them?" if dtype == torch.bool else _CAST
        raise Mistake(f"{what} has the wrong dtype", dtype, got.dtype, cause)


_CAST = "In which dtype is it to come out, and where is the last cast?"


def _of_shapes(expected, got):
    """What a shape looks like beside the expected one, as a question."""
    expected, got = tuple(expected), tuple(got)
    if len(got) < len(expected):
        return "Which axis got lost: a mean or sum without keepdim, an index, a squeeze?"
    if len(got) > len(expected):
        return "Where does the axis too many come from: an unsqueeze, a stack, a broadcast?"
    if sorted(got) == sorted(expected):
        return "Are axes in another order: a transpose too many or too few?"
    axis, want, have = next((i, a, b) for i, (a, b) in enumerate(zip(expected, got, strict=True)) if a != b)
    if want and have > want and have % want == 0:
        return f"Why is axis {axis} {have // want} times too long: repeated, or joined twice?"
    if have and want > have and want % have == 0:
        return f"Why does axis {axis} hold only 1 of {want // have} parts?"
    return f"What should axis {axis} hold, and what is it made from?"


def close(got, expected, within, symptom, cause):
    """Every entry within an absolute tolerance. `expected` is a tensor, or a number for a scalar or all entries."""
    if not isinstance(expected, torch.Tensor):
        expected = torch.full(got.shape if isinstance(got, torch.Tensor) else (), float(expected), dtype=torch.float64)
        got = torch.as_tensor(got) if isinstance(got, (int, float)) else got
    tensor(got, expected.shape, real=expected.is_floating_point())
    got, expected = got.double(), expected.double()
    if not bool(torch.isfinite(got).all()):
        MEASURED.append((float("inf"), within))
        bad = "NaN" if bool(torch.isnan(got).any()) else "infinity"
        raise Mistake(f"{symptom} ({bad} came out)", "finite numbers", bad, cause)
    finite(expected, "what it is compared with", cause)  # it may come from the same code: nothing is near NaN
    difference = (got - expected).abs()
    that(difference.numel() > 0, "the result is empty", "Where did its entries go?", "some numbers", "none")
    worst = float(difference.max())
    MEASURED.append((worst, within))
    if worst > within:
        raise Mistake(symptom, *_shown(expected, got, difference > within), cause, _digits(worst, expected))


def identical(got, expected, symptom, cause):
    """Equal to the last bit."""
    tensor(got, expected.shape, real=expected.is_floating_point())
    if got.is_floating_point() != expected.is_floating_point() or not torch.equal(got, expected):
        difference = (got.double() - expected.double()).abs().nan_to_num(torch.inf)
        digits = _digits(float(difference.max()), expected.double())
        raise Mistake(symptom, *_shown(expected, got, difference > 0), cause, digits)


def differ(got, other, by, symptom, cause):
    """Two answers that are not the same: somewhere they are more than `by` apart. `other` may be one number.

    What has to stay equal is only worth something in code that can change: this is the other half of such a test.
    """
    shape = other.shape if isinstance(other, torch.Tensor) else getattr(got, "shape", ())
    tensor(got, shape)
    moves = float((got.double() - other).abs().max()) if got.numel() else 0.0
    that(moves > by, symptom, cause, "a change", f"{moves:.2g}")


def gradients(outcome, expected, within):
    """The gradients of a call: of its first input (`x`) and of the parameters by name, each near the expected one."""
    cause = (
        "Is something detached, or used through .data? All that the output is made of gets its share of the gradient."
    )
    for name, right in expected.items():
        got = outcome.grad if name == "x" else outcome.grads.get(name)
        that(got is not None, f"no gradient reaches {name}", cause)
        close(got, right, within, f"the gradient of {name} is wrong", cause)


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
        if not any(word in error.message for word in ("device", "meta")):
            raise  # it has nothing to do with the device
        raise Mistake("on another device your code fails", got=error.message, cause=cause) from error
    tensor(result, shape, real=False)
    same(result.device.type, "meta", "the result left the input's device", cause)


def avoids(taken, cause):
    """Files that take no ready-made part from torch; `taken` has what they do take of those, {file: names}."""
    for file, names in taken.items():
        that(not names, f"{file} uses torch's ready-made {', '.join(names)}, which is the exercise itself", cause)


def usable(error, asked, answers):
    """What to say in place of an error that a result without a value has led to, or this error itself."""
    if isinstance(error, MemoryError) or not isinstance(error, AssertionError) and type(error).__module__ != "builtins":
        return error  # not of this test's making
    empty = [answer for answer in answers if isinstance(answer, Outcome) and answer.output is None]
    if empty:
        what = next(iter(asked)) if len(asked) == 1 else "your code"
        return Mistake(f"{what} gives None", "a tensor", "None", "Is there a return at the end of the function?")
    if isinstance(error, AssertionError):
        return error
    last = next((answer.output for answer in reversed(answers) if isinstance(answer, Outcome)), None)
    return Mistake(f"what your code gives can't be used as a result ({type(error).__name__})", got=_sort(last))


def _sort(value):
    """What kind of thing a result is."""
    if isinstance(value, torch.Tensor):
        return f"{value.dtype} {tuple(value.shape)}"
    if isinstance(value, (tuple, list)):
        return f"{type(value).__name__} of " + ", ".join(_sort(item) for item in value[:4])
    return type(value).__name__


def raises(kind, work, symptom, cause):
    """`work` makes student code raise an exception of this type name."""
    try:
        work()
    except StudentError as error:
        if error.kind == kind:
            return
        raise Mistake(symptom, kind, error.kind, cause) from error
    raise Mistake(symptom, kind, "no exception", cause)


def _digits(worst, expected):
    """How many digits are right where a result is nearly right, else None."""
    size = float(expected.abs().max()) if expected.numel() else 0.0
    return int(-math.log10(worst / size)) if 0 < worst <= NEAR * size else None


def _shown(expected, got, differs):
    """Expected and got as texts: whole where they are small, else the entry that differs most."""
    if 1 < expected.numel() <= SMALL:
        return _side_by_side(
            expected.flatten().tolist(), got.flatten().tolist(), differs.flatten().tolist(), expected.shape
        )
    difference = (got.double() - expected.double()).abs().nan_to_num(torch.inf)
    worst = int(difference.argmax()) if difference.numel() else 0
    return _numbers(expected.flatten()[worst], got.flatten()[worst])


def _side_by_side(expected, got, differs, shape):
    """Two rows of numbers, one beneath the other, with a star behind each one that differs."""
    pairs = [_numbers(*pair) if differing else [f"{float(pair[0]):.6g}"] * 2 for *pair, differing in
             zip(expected, got, differs, strict=True)]  # fmt: skip
    marked = [(a, b + "*" * differing) for (a, b), differing in zip(pairs, differs, strict=True)]
    wide = [max(len(a), len(b)) for a, b in marked]
    last = shape[-1] if len(shape) > 1 else len(marked)
    return tuple(_rows([pair[side].ljust(w) for pair, w in zip(marked, wide, strict=True)], last) for side in (0, 1))


def _rows(texts, last):
    """Entries in rows of the last axis, the rows parted by a bar."""
    rows = ["  ".join(texts[i : i + last]) for i in range(0, len(texts), last)]
    return "  |  ".join(rows).rstrip()


def _numbers(*values):
    """Numbers as text, with as many digits as it takes to tell them apart."""
    for digits in (6, 9, 17):
        texts = [f"{float(value):.{digits}g}" for value in values]
        if len(set(texts)) == len(texts):
            break
    return texts
