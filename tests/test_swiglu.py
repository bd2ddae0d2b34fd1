"""Questions to SwiGLU in modules.py; test_budget.py asks ffn_dim, its inner width.

B batch, T query length, D width, F FFN width. From basic to subtle: the first red test is the next step.
"""

import math

import pytest
import torch

from machinery import expect
from machinery.draw import Draw, swiglu_shapes
from machinery.kinds import objects_do_not_meet, same_in_any_layout, same_in_training
from machinery.stored import stored


def swiglu(student, weights):
    F, D = weights["w_gate.weight"].shape
    return student.SwiGLU(D, F).load(weights)


def drawn_swiglu(student, seed, D=5, F=7):
    draw = Draw(seed)
    weights = draw.weights(swiglu_shapes(D, F), std=0.8)
    return draw, weights, swiglu(student, weights)


def one_unit(gate, up):
    """A SwiGLU of D = F = 1 with these two weights, so that its output is silu(gate * x) * up * x."""
    return {
        "w_gate.weight": torch.tensor([[gate]]),
        "w_up.weight": torch.tensor([[up]]),
        "w_down.weight": torch.ones(1, 1),
    }


def silu(z):
    return z / (1 + math.exp(-z))


@pytest.mark.points(1)
def test_swiglu_returns_the_shape_of_its_input(student):
    draw, _, ffn = drawn_swiglu(student, 21)
    expect.tensor(ffn(draw.normal(2, 3, 5)), (2, 3, 5), "SwiGLU's output", torch.float32)


@pytest.mark.points(2)
def test_swiglu_worked_example(student):
    draw = Draw(30)
    gate, up = draw.real(2.0, 1.0, 4.0), draw.real(3.0, 1.0, 5.0)
    weights = {
        "w_gate.weight": torch.diag(torch.tensor([gate, -gate])),
        "w_up.weight": torch.diag(torch.tensor([up, up])),
        "w_down.weight": torch.eye(2),
    }
    y = swiglu(student, weights)(torch.ones(1, 2))
    cause = "Is it silu(gate) * up, with silu(z) = z * sigmoid(z)?"
    expected = torch.tensor([[silu(gate) * up, silu(-gate) * up]])  # [5.2847825, -0.7152175]
    expect.close(y, expected, 1e-4, "value (3, 3) with gate (2, -2) comes out wrong", cause)


@pytest.mark.points(2)
def test_swiglu_uses_silu(student):
    draw = Draw(48)
    values = [draw.real(1.0, 0.5, 3.0), draw.real(-1.0, -3.0, -0.5), draw.real(2.0, 0.5, 3.0)]
    y = swiglu(student, one_unit(1.0, 1.0))(torch.tensor(values)[:, None])
    cause = "Is the gate z * sigmoid(z), and neither a plain sigmoid nor GELU?"
    expected = torch.tensor([[silu(z) * z] for z in values])  # 0.7310586, 0.2689414, 3.5231884
    expect.close(y, expected, 1e-4, "the gate's curve is not SiLU", cause)


@pytest.mark.points(2)
def test_swiglu_gate_carries_the_silu(student):
    draw = Draw(49)
    gate, up = draw.real(20.0, 15.0, 30.0), draw.real(1.0, 0.5, 2.0)
    y = swiglu(student, one_unit(-gate, up))(torch.ones(1, 1))
    cause = "Does the SiLU stand on w_gate (and not on w_up)?"
    expect.close(y, 0.0, 1e-4, "a gate of -20 does not shut the unit", cause)
    y = swiglu(student, one_unit(gate, up))(torch.ones(1, 1))
    expect.close(y, gate * up, 1e-4, "a gate of 20 does not open the unit", cause)


@pytest.mark.points(1)
def test_swiglu_is_linear_in_the_up_branch(student):
    draw, weights, ffn = drawn_swiglu(student, 22)
    x = draw.normal(3, 5)
    doubled = swiglu(student, {**weights, "w_up.weight": 2 * weights["w_up.weight"]})
    expect.differ(ffn(x), 0.0, 0.01, "nothing comes out", "Does the result contain both branches?")
    expect.close(
        doubled(x),
        2 * ffn(x),
        within=1e-4,
        symptom="twice the up projection does not give twice the output",
        cause="Does the up branch go into the product as it is, with no activation on it?",
    )


@pytest.mark.points(0)
def test_swiglu_has_no_bias(student):
    ffn = student.SwiGLU(5, 7)
    ffn(torch.ones(5))
    expect.same(
        ffn.shapes(),
        dict(swiglu_shapes(5, 7)),
        symptom="SwiGLU does not have exactly the three matrices of the contract",
        cause="Is bias=False on all three, with the shapes (F, D), (F, D), (D, F)?",
    )


@pytest.mark.points(0)
def test_swiglu_fresh_module_runs(student):
    y = student.SwiGLU(8, 24)(Draw(23).normal(2, 8))
    expect.tensor(y, (2, 8), "the output of a fresh SwiGLU")
    expect.finite(y, "the output of a fresh SwiGLU", "Is every weight filled in __init__?")
    size = student.SwiGLU(256, 512).state()["w_up.weight"].double().std()
    cause = "Is the standard deviation of the start near 1/sqrt(D), not its square, and not 1?"
    expect.that(0.01 < size < 0.3, "fresh weights have an odd size", cause, "0.01 .. 0.3", f"{float(size):.4f}")


@pytest.mark.points(1)
def test_swiglu_gradient_is_finite_for_large_inputs(student):
    size = float(Draw(50).whole(200, 150, 400))
    x = torch.tensor([[-size], [size]])
    outcome = swiglu(student, one_unit(1.0, 1.0)).run(x, upstream=torch.ones(2, 1))
    cause = "Does exp(-x) overflow on the way back? torch has a sigmoid and a silu that don't."
    expect.finite(outcome.grad, "the gradient at -200 and 200", cause)
    expected = torch.tensor([[0.0], [2 * size]])  # of silu(x) * x, which is x * x up there
    expect.close(outcome.grad, expected, 1e-2, "the gradient at -200 and 200 is wrong", cause)


@pytest.mark.points(1)
def test_swiglu_backward_reaches_every_weight(student):
    draw, weights, ffn = drawn_swiglu(student, 24)
    outcome = ffn.run(draw.normal(3, 5), upstream=draw.normal(3, 5))
    for name in weights:
        grad = outcome.grads.get(name)
        cause = f"Is self.{name.split('.')[0]} called, and its result used?"
        expect.that(grad is not None and bool(grad.abs().sum() > 0), f"no gradient reaches {name}", cause)


@pytest.mark.points(1)
def test_swiglu_runs_in_bf16(student):
    draw, _, ffn = drawn_swiglu(student, 25)
    x = draw.normal(3, 5)
    fine = ffn(x)
    coarse = ffn.bfloat16()(x.bfloat16())
    expect.tensor(coarse, x.shape, "the output of a bf16 SwiGLU", torch.bfloat16)
    cause = "Do input and weights keep one dtype through the whole FFN?"
    off = (coarse.float() - fine).norm() / fine.norm()
    expect.close(off, 0.0, 0.2, "the bf16 output is far from the fp32 one", cause)


@pytest.mark.points(0)
def test_swiglu_keeps_fp64(student):
    draw, weights, ffn = drawn_swiglu(student, 26)
    x = draw.normal(3, 5).double()
    y = ffn.double()(x)
    expect.tensor(y, x.shape, "the output of a fp64 SwiGLU", torch.float64)
    doubled = swiglu(student, {**weights, "w_down.weight": 2 * weights["w_down.weight"]}).double()(x)
    expect.close(doubled, 2 * y, 1e-9, "a fp64 SwiGLU lost precision", "Is there a cast to fp32 inside?")
    unit = swiglu(student, one_unit(1.0, 1.0)).double()(torch.ones(1, 1).double())
    expect.close(unit, 0.7310585786300049, 1e-12, "silu(1) lost digits in fp64", "Is the gate cast to fp32?")


@pytest.mark.points(0)
def test_swiglu_does_not_modify_its_input(student):
    draw, _, ffn = drawn_swiglu(student, 27)
    x = draw.normal(3, 5)
    expect.identical(ffn.run(x).inputs[0], x, "the caller's tensor was changed", "Is there an operation in place?")


@pytest.mark.points(0)
def test_swiglu_accepts_any_rank(student):
    draw, _, ffn = drawn_swiglu(student, 28)
    x = draw.normal(2, 3, 1, 5)
    whole = ffn(x)
    expect.tensor(whole, x.shape)
    for part, same in ((x[0], whole[0]), (x[0, 0], whole[0, 0]), (x[0, 0, 0], whole[0, 0, 0])):
        y = ffn(part)
        expect.tensor(y, part.shape, f"the output for an input of shape {tuple(part.shape)}")
        cause = "Does the code count axes from the end (-1), and name no rank?"
        expect.close(y, same, 1e-4, f"an input of shape {tuple(part.shape)} gives another result", cause)


@pytest.mark.points(0)
def test_swiglu_follows_its_device(student):
    _, _, ffn = drawn_swiglu(student, 29)
    ffn.to_meta()
    expect.stays_on_meta(lambda: ffn(torch.empty(2, 5, device="meta")), (2, 5))


@pytest.mark.points(0)
def test_swiglu_is_the_same_in_training(student):
    draw, _, ffn = drawn_swiglu(student, 311)
    same_in_training(ffn, (draw.normal(2, 3, 5),), draw.normal(2, 3, 5))


@pytest.mark.points(0)
def test_swiglu_accepts_one_unit_and_no_rows(student):
    draw, _, ffn = drawn_swiglu(student, 312)
    expect.tensor(ffn(torch.zeros(0, 3, 5)), (0, 3, 5), "the output for a batch of no rows")
    y = swiglu(student, one_unit(2.0, 3.0))(torch.ones(1, 1, 1))
    expect.tensor(y, (1, 1, 1), "the output for B = T = D = 1")
    expect.close(y, 3 * silu(2.0), 1e-4, "with D = F = 1 the value is wrong", "Does a squeeze drop an axis?")


@pytest.mark.points(0)
def test_swiglu_has_no_longest_text(student):
    draw, _, ffn = drawn_swiglu(student, 313)
    x = draw.normal(1, 1_100, 5)
    y, cause = ffn(x), "Is there a buffer or a loop of a fixed length?"
    expect.tensor(y, x.shape)
    expect.close(y[:, -3:], ffn(x[:, -3:]), 1e-4, "the last of 1,100 tokens come out wrong", cause)


@pytest.mark.points(0)
def test_swiglu_tells_axes_of_equal_size_apart(student):
    draw, weights, ffn = drawn_swiglu(student, 314, D=4, F=4)
    x = draw.normal(4, 4, 4)
    # A fifth unit that gives nothing changes no value, and its D and F differ.
    wider = {
        name: torch.nn.functional.pad(w, (0, 1) if name.startswith("w_down") else (0, 0, 0, 1))
        for name, w in weights.items()
    }
    cause = "With D = F a matrix and its transpose have one shape. Is each used as torch's Linear does, x @ weight.T?"
    expect.close(
        ffn(x), swiglu(student, wider)(x.view(16, 4)).view(4, 4, 4), 1e-4, "with D = F the values are others", cause
    )


@pytest.mark.points(0)
def test_swiglu_accepts_strided_input(student):
    draw, _, ffn = drawn_swiglu(student, 315)
    same_in_any_layout(ffn, draw.normal(1, 3, 4, 5).repeat(2, 1, 1, 1), layouts=("transposed", "expanded"), within=1e-4)


@pytest.mark.points(0)
def test_swiglu_objects_do_not_meet(student):
    draw, answer = Draw(316), stored("modules")
    weights = {name: answer[f"swiglu.{name}"] for name in swiglu_shapes(1, 1)}
    objects_do_not_meet(
        lambda: drawn_swiglu(student, 316)[2],
        (draw.normal(2, 5),),
        lambda: swiglu(student, weights)(answer["swiglu.x"]),
        answer["swiglu.y"],
    )


@pytest.mark.points(0)
def test_swiglu_takes_values_of_any_size(student):
    for size in (1e-10, 1e10):  # silu(x) * x is x * x / 2 down there, and x * x up there
        y = swiglu(student, one_unit(1.0, 1.0))(torch.full((1, 1), size))
        expected = size * size * (0.5 if size < 1 else 1.0)
        cause = "Is something clamped or rounded on the way? fp32 holds 1e-20 and 1e20."
        expect.close(y / expected, 1.0, 1e-3, f"an input of {size:g} is off by a factor", cause)


@pytest.mark.points(0)
def test_swiglu_gradients_are_those_of_its_formula(student):
    answer = stored("modules")
    weights = {name: answer[f"swiglu.{name}"] for name in swiglu_shapes(1, 1)}
    outcome = swiglu(student, weights).run(answer["swiglu.x"], upstream=answer["swiglu.upstream"], training=True)
    expect.gradients(outcome, {name: answer[f"swiglu.grad.{name}"] for name in ("x", *weights)}, 1e-3)


@pytest.mark.points(1)
def test_swiglu_matches_stored_answers(student):
    answer = stored("modules")
    weights = {name: answer[f"swiglu.{name}"] for name in swiglu_shapes(1, 1)}
    cause = "Which of the tests above is red? All green: is w_down applied last, to the product?"
    y = swiglu(student, weights)(answer["swiglu.x"])
    expect.close(y, answer["swiglu.y"], 1e-3, "SwiGLU's output differs from the stored answer", cause)
