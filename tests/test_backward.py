"""Questions to rmsnorm_backward: the gradient of RMSNorm by hand (bonus).

B batch, T query length, S key length, D width, N query heads, K key/value heads, H head size, L layers. A part
that the code does not look at yet counts as not started, not as wrong.
"""

import pytest

from machinery import expect
from machinery.draw import Draw
from machinery.stored import stored
from nanolm.errors import StudentError


def drawn_backward(student, seed, shape=(2, 3, 6), eps=0.1):
    """x, upstream, gain and the two gradients that the student's function gives, all fp64."""
    draw = Draw(seed)
    x, upstream, gain = draw.normal(*shape).double(), draw.normal(*shape).double(), draw.gain(shape[-1]).double()
    return x, upstream, gain, two_gradients(student, x, gain, eps, upstream)


def two_gradients(student, *given):
    grads = student.rmsnorm_backward(*given)
    two = isinstance(grads, (tuple, list)) and len(grads) == 2
    expect.that(two, "rmsnorm_backward does not return two tensors", "Does it return grad_x, grad_weight?")
    return grads


@pytest.mark.points(1)
def test_backward_returns_two_gradients(student):
    for shape in ((2, 3, 6), (3, 6), (6,)):
        _, _, _, (grad_x, grad_weight) = drawn_backward(student, 101, shape)
        expect.tensor(grad_x, shape, "the gradient of x")
        expect.tensor(grad_weight, (6,), "the gradient of the weight")


@pytest.mark.points(1)
def test_backward_of_the_weight_sums_over_rows(student):
    x, upstream, gain, (_, grad_weight) = drawn_backward(student, 102)
    rows = [student.rmsnorm_backward(x[b, t], gain, 0.1, upstream[b, t])[1] for b in range(2) for t in range(3)]
    cause = "Is it the sum over every token of upstream * x / r?"
    expect.close(grad_weight, sum(rows), 1e-9, "the weight's gradient is not the sum of its rows'", cause)
    expect.differ(grad_weight, 0.0, 1e-3, "the weight's gradient is 0", cause)


@pytest.mark.points(1)
def test_backward_matches_autograd(student):
    x, upstream, gain, (grad_x, grad_weight) = drawn_backward(student, 103)
    norm = student.RMSNorm(6, eps=0.1).load({"weight": gain.float()}).double()
    outcome = norm.run(x, upstream=upstream)
    cause = "Is the part along n the mean of g * n (over D), and is eps under the root here too?"
    expect.close(grad_x, outcome.grad, 1e-5, "the gradient of x differs from autograd's", cause)
    expect.differ(grad_x, 0.0, 1e-3, "the gradient of x is 0", cause)
    expect.that("weight" in outcome.grads, "RMSNorm has no parameter `weight`", "Is __init__ as it was given?")
    cause = "Is it upstream * n, without the gain?"
    right = outcome.grads["weight"]
    expect.that(right is not None, "autograd finds no gradient of RMSNorm's weight", "Do the rmsnorm tests pass?")
    expect.close(grad_weight, right, 1e-5, "the gradient of the weight differs from autograd's", cause)


@pytest.mark.points(1)
def test_backward_matches_stored_answers(student):
    answer = stored("modules")
    x, gain, upstream = (answer[f"backward.{name}"].double() for name in ("x", "weight", "upstream"))
    cause = "Which of the tests above is red? All green: compare your formula with the header, sign by sign."
    for name, got in zip(("x", "weight"), two_gradients(student, x, gain, 0.1, upstream), strict=True):
        symptom = f"the gradient of {name} differs from the stored answer"
        expect.close(got, answer[f"backward.grad_{name}"], 1e-5, symptom, cause)


@pytest.mark.points(0)
def test_backward_is_your_own(student):
    x, upstream, gain, _ = drawn_backward(student, 104)
    cause = "Can you write it from the header's formula? Autograd is what it is compared with."
    try:
        student.rmsnorm_backward.run(x, gain, 0.1, upstream, by_hand=True)
    except StudentError as error:
        symptom = "rmsnorm_backward fails where torch differentiates nothing: does it ask autograd?"
        raise expect.Mistake(symptom, "gradients", error.message, cause) from error
