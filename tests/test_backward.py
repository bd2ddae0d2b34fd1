"""Questions to rmsnorm_backward: the gradient of RMSNorm by hand (bonus).

B batch, T query length, S key length, D width, N query heads, K key/value heads, H head size, L layers. A part
that the code does not look at yet counts as not started, not as wrong.
"""

import pytest
import torch

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


def by_autograd(x, gain, eps, upstream):
    """What autograd says of torch's own RMSNorm, so that nobody's mistake in another part stands in it."""
    leaf, weight = x.clone().requires_grad_(), gain.clone().requires_grad_()
    (torch.nn.functional.rms_norm(leaf, gain.shape, weight, eps) * upstream).sum().backward()
    return leaf.grad, weight.grad


def agrees(student, x, gain, eps, upstream, within=1e-5, what=""):
    grad_x, grad_weight = two_gradients(student, x, gain, eps, upstream)
    right_x, right_weight = by_autograd(x, gain, eps, upstream)
    cause = "Is the part along n the mean of g * n (over D), and is eps under the root here too?"
    expect.close(grad_x, right_x, within, f"the gradient of x differs from autograd's{what}", cause)
    cause = "Is it upstream * n, without the gain?"
    expect.close(grad_weight, right_weight, within, f"the gradient of the weight differs from autograd's{what}", cause)


@pytest.mark.points(1)
def test_backward_matches_autograd(student):
    x, upstream, gain, (grad_x, _) = drawn_backward(student, 103)
    agrees(student, x, gain, 0.1, upstream)
    expect.differ(grad_x, 0.0, 1e-3, "the gradient of x is 0", "Does the result contain the upstream gradient?")


@pytest.mark.points(0)
def test_backward_is_the_same_with_gradients(student):
    x, upstream, gain, (still, _) = drawn_backward(student, 381)
    outcome = student.rmsnorm_backward.run(x, gain, 0.1, upstream, upstream=upstream)
    cause = "Does the function ask whether gradients are on?"
    expect.tensor(outcome.output[0], x.shape, "the gradient of x")
    expect.close(outcome.output[0], still, 1e-9, "where gradients are on the result is another one", cause)


@pytest.mark.points(0)
def test_backward_of_edge_and_equal_sizes(student):
    draw = Draw(382)
    for shape in ((3, 1), (1, 1, 5), (4, 4, 4), (1, 1_030, 3)):
        x, upstream = draw.normal(*shape).double(), draw.normal(*shape).double()
        gain = draw.gain(shape[-1]).double() + 0.3
        agrees(student, x, gain, 0.1, upstream, what=f" for x of shape {shape}")


@pytest.mark.points(0)
def test_backward_runs_in_fp32(student):
    x, upstream, gain, _ = drawn_backward(student, 383)
    for got, right in zip(
        two_gradients(student, x.float(), gain.float(), 0.1, upstream.float()),
        by_autograd(x, gain, 0.1, upstream),
        strict=True,
    ):
        expect.tensor(got, right.shape, "a gradient for fp32 tensors", torch.float32)
        expect.close(got, right, 1e-4, "in fp32 a gradient is another one", "Is something of a fixed dtype inside?")


@pytest.mark.points(0)
def test_backward_takes_rows_of_any_size(student):
    draw = Draw(384)
    unit, upstream, gain = draw.normal(3, 6).double(), draw.normal(3, 6).double(), draw.gain(6).double()
    for size in (0.0, 1e-3, 1e4):
        agrees(student, size * unit, gain, 1e-5, upstream, within=1e-4, what=f" for entries near {size:g}")


@pytest.mark.points(0)
def test_backward_leaves_its_inputs_as_they_are(student):
    x, upstream, gain, (grad_x, _) = drawn_backward(student, 385, (2, 3, 4, 6))
    outcome = student.rmsnorm_backward.run(x, gain, 0.1, upstream, layout="transposed")
    cause = "Does a .view() need memory in one piece, or does something write into x?"
    expect.tensor(outcome.output[0], x.shape, "the gradient of x for a transposed x")
    expect.close(outcome.output[0], grad_x, 1e-9, "a transposed x gives other gradients", cause)
    for got, given in zip(outcome.inputs, (x, gain, 0.1, upstream), strict=True):
        if isinstance(given, torch.Tensor):
            expect.identical(got, given, "the caller's tensor was changed", cause)


@pytest.mark.points(0)
def test_backward_follows_its_device(student):
    x, gain = torch.empty(2, 3, 6, device="meta"), torch.empty(6, device="meta")
    for index, shape in enumerate(((2, 3, 6), (6,))):
        expect.stays_on_meta(lambda index=index: two_gradients(student, x, gain, 0.1, x)[index], shape)


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
