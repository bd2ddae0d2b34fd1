"""Questions to RMSNorm in modules.py; test_backward.py asks the bonus, its backward by hand.

B batch, T query length, D width. From basic to subtle: the first red test is the next step.
"""

import math

import pytest
import torch

from machinery import expect
from machinery.draw import Draw
from machinery.kinds import leaves_torch_as_it_was, objects_do_not_meet, same_in_any_layout, same_in_training
from machinery.stored import stored


def rmsnorm(student, gain, eps=1e-5):
    return student.RMSNorm(len(gain), eps=eps).load({"weight": gain})


@pytest.mark.points(0)
def test_rmsnorm_returns_the_shape_of_its_input(student):
    D = 5
    x = Draw(1).normal(2, 3, D)
    expect.tensor(rmsnorm(student, torch.ones(D))(x), (2, 3, D), "RMSNorm's output", torch.float32)


@pytest.mark.points(2)
def test_rmsnorm_produces_unit_rms(student):
    D = 8
    size = 10.0 ** torch.arange(8) / 1000  # each row has its own size
    for x in (Draw(2).normal(8, D, mean=3.0) * size[:, None], Draw(3).normal(2, 8, D, mean=3.0) * size[:, None]):
        y = rmsnorm(student, torch.ones(D), eps=1e-12)(x)
        expect.tensor(y, x.shape)
        expect.close(
            y.double().pow(2).mean(dim=-1).sqrt(),
            1.0,
            within=1e-3,
            symptom="a row of the output does not have root mean square 1",
            cause="Is the mean of the squares taken over the last axis (D), with keepdim, and then the root?",
        )


@pytest.mark.points(1)
def test_rmsnorm_worked_example_3_4(student):
    draw = Draw(17)
    a, b = draw.real(3.0, 1.0, 9.0), draw.real(4.0, 1.0, 9.0)
    y = rmsnorm(student, torch.ones(2), eps=1e-12)(torch.tensor([[a, b]]))
    expected = torch.tensor([[a, b]]) / math.sqrt((a * a + b * b) / 2)  # [0.8485281, 1.1313708]
    expect.close(y, expected, 1e-5, "RMSNorm of [3, 4] is wrong", "Is the divisor sqrt((9 + 16) / 2) = 3.54?")


@pytest.mark.points(1)
def test_rmsnorm_does_not_center(student):
    x = Draw(4).normal(4, 32, mean=5.0)
    y = rmsnorm(student, torch.ones(32))(x)
    expect.tensor(y, x.shape)
    expect.close(
        y.mean(dim=-1),
        x.mean(dim=-1) / x.norm(dim=-1) * 32**0.5,
        within=1e-3,
        symptom="the mean of a row changed by more than the scale",
        cause="Do you subtract the mean? RMSNorm only divides.",
    )


@pytest.mark.points(1)
def test_rmsnorm_scales_with_gamma(student):
    D = 7
    draw = Draw(5)
    x, gain = draw.normal(3, D), draw.gain(D)
    plain = rmsnorm(student, torch.ones(D))(x)
    expect.differ(plain, 0.0, 0.1, "with a gain of ones nothing comes out", "Does the result contain x?")
    expect.close(
        rmsnorm(student, gain)(x),
        plain * gain,
        within=1e-5,
        symptom="the output does not follow the gain",
        cause="Is the output multiplied by self.weight, as it is (not 1 + weight)?",
    )


@pytest.mark.points(1)
def test_rmsnorm_is_per_token(student):
    draw = Draw(6)
    x, gain = draw.normal(2, 6, 8), draw.gain(8)
    other = x.clone()
    other[:, 5], other[1] = draw.normal(2, 8, std=9.0), draw.normal(6, 8, std=9.0)
    norm = rmsnorm(student, gain)
    expect.identical(
        norm(other)[0, :5],
        norm(x)[0, :5],
        symptom="changing one token changes the norm of another",
        cause="Does the mean run over the last axis only, for each token by itself?",
    )
    expect.differ(norm(other)[1], norm(x)[1], 0.1, "other tokens have the same norm", "Does the result contain x?")


@pytest.mark.points(1)
def test_rmsnorm_is_scale_invariant(student):
    draw = Draw(7)
    x, gain = draw.normal(4, 16), draw.gain(16)
    norm = rmsnorm(student, gain, eps=1e-9)
    expect.differ(norm(-x), norm(x), 0.1, "minus the input gives the same output", "Does the result contain x?")
    expect.close(
        norm(10 * x),
        norm(x),
        within=1e-4,
        symptom="ten times the input gives another output",
        cause="Do you divide by the root of the mean square, once?",
    )


@pytest.mark.points(1)
def test_rmsnorm_puts_eps_inside_the_root(student):
    draw = Draw(18)
    value, eps = draw.real(0.3, 0.2, 0.5), draw.real(0.1, 0.05, 0.2)
    y = rmsnorm(student, torch.ones(4), eps=eps)(torch.full((1, 4), value))
    cause = "Is eps added to the mean square before the root is taken? 0.3 / sqrt(0.09 + 0.1) is wanted."
    expected = value / math.sqrt(value**2 + eps)  # 0.6882472
    expect.close(y, expected, 1e-5, "a row of 0.3 with eps 0.1 comes out wrong", cause)


@pytest.mark.points(1)
def test_rmsnorm_uses_configured_eps(student):
    def normed(value, eps):
        return value / math.sqrt(value**2 + eps)

    draw = Draw(19)
    value, tiny_value = 0.05 * draw.real(1.0, 0.7, 1.5), 0.01 * draw.real(1.0, 0.7, 1.5)
    for eps in (1e-2, 2.5e-3, 1e-9):  # 0.4472136, 0.7071068, 0.9999998
        y = rmsnorm(student, torch.ones(4), eps=eps)(torch.full((1, 4), value))
        cause = "Do you use self.eps, the number that the constructor was given?"
        expect.close(y, normed(value, eps), 1e-5, f"eps = {eps} does not have its effect", cause)
    default = student.RMSNorm(4).load({"weight": torch.ones(4)})(torch.full((1, 4), tiny_value))
    cause = "Is the default of eps still 1e-5, as it was given?"
    symptom = "without an eps the norm does not use 1e-5"
    expect.close(default, normed(tiny_value, 1e-5), 1e-5, symptom, cause)  # 0.9534626


@pytest.mark.points(1)
def test_rmsnorm_zero_row_is_finite(student):
    outcome = rmsnorm(student, torch.ones(6)).run(torch.zeros(2, 6), upstream=torch.ones(2, 6))
    cause = "What keeps the division finite when every entry is 0?"
    expect.close(outcome.output, 0.0, 1e-6, "a row of zeros does not come out as zeros", cause)
    expect.finite(outcome.grad, "the gradient of a row of zeros", "Does a root of exactly 0 stand somewhere?")


@pytest.mark.points(1)
def test_rmsnorm_fp16_does_not_overflow(student):
    draw = Draw(20)
    x = draw.whole(1000, 300, 3000) * torch.tensor([[1.0, -1.0, 1.0, -1.0]]).half()
    y = rmsnorm(student, torch.ones(4)).half()(x)
    expect.tensor(y, x.shape)
    cause = "Are the squares taken in fp32? In fp16 everything above 65504 is infinity."
    expect.close(y, x.double().sign(), 2e-2, "fp16 rows of +-1000 come out wrong", cause)


@pytest.mark.points(1)
def test_rmsnorm_computes_in_fp32(student):
    x = Draw(8).normal(64, 512).bfloat16()
    y = rmsnorm(student, torch.ones(512)).bfloat16()(x)
    expect.tensor(y, x.shape)
    exact = x.double() / x.double().norm(dim=-1, keepdim=True) * 512**0.5
    expect.close(
        (y.float() != exact.bfloat16().float()).double().mean(),  # the share of entries that are rounded more than once
        0.0,
        within=0.02,
        symptom="too many bf16 entries are not the fp32 result rounded once",
        cause="Is the input cast to fp32 first, and the result cast back at the end?",
    )


@pytest.mark.points(1)
def test_rmsnorm_preserves_dtype(student):
    D = 8
    x = Draw(9).normal(3, D)
    for name, norm in (
        ("a bf16 model", rmsnorm(student, torch.ones(D)).bfloat16()),
        ("an fp32 gain", rmsnorm(student, torch.ones(D))),
    ):
        expect.tensor(norm(x.bfloat16()), (3, D), f"the output for a bf16 input and {name}", torch.bfloat16)
    expect.tensor(rmsnorm(student, torch.ones(D))(x), (3, D), "the output for an fp32 input", torch.float32)


@pytest.mark.points(0)
def test_rmsnorm_runs_in_fp64(student):
    x = Draw(10).normal(4, 16).double()
    y = rmsnorm(student, torch.ones(16), eps=1e-30).double()(x)
    expect.tensor(y, x.shape, "the output of a fp64 norm", torch.float64)
    cause = "Is the input cast to at least fp32, and the result back to fp64?"
    exact = x / x.norm(dim=-1, keepdim=True) * 4
    expect.close(y, exact, 1e-5, "a fp64 input gives other values than fp32", cause)  # through fp32 is right


@pytest.mark.points(0)
def test_rmsnorm_gamma_starts_at_one(student):
    norm = student.RMSNorm(9)
    norm(torch.ones(9))
    gain = norm.state().get("weight")
    expect.tensor(gain, (9,), "the gain `weight`")
    cause = "Is the gain made of ones? A fresh norm must not change the size of the stream."
    expect.close(gain, 1.0, 1e-6, "a fresh gain is not 1", cause)


@pytest.mark.points(0)
def test_rmsnorm_has_one_gain_per_channel(student):
    norm = student.RMSNorm(9)
    norm(torch.ones(9))
    expect.same(
        norm.shapes(),
        {"weight": (9,)},
        symptom="RMSNorm does not have exactly one gain of D numbers",
        cause="Is `weight` the only parameter? RMSNorm has no bias.",
    )


@pytest.mark.points(0)
def test_rmsnorm_does_not_modify_its_input(student):
    draw = Draw(11)
    x = draw.normal(3, 6)
    outcome = rmsnorm(student, draw.gain(6)).run(x)
    expect.identical(
        outcome.inputs[0], x, "the caller's tensor was changed", "Is there an operation in place, like x /= ... ?"
    )


@pytest.mark.points(1)
def test_rmsnorm_gradient_is_orthogonal_to_input(student):
    draw = Draw(12)
    x, upstream = draw.normal(4, 6).double(), draw.normal(4, 6).double()
    outcome = rmsnorm(student, draw.gain(6), eps=1e-12).double().run(x, upstream=upstream)
    expect.finite(outcome.grad, "the gradient of the input", "Does the result still hang on x?")
    expect.differ(outcome.grad, 0.0, 1e-3, "the gradient of the input is 0", "Does the result still hang on x?")
    expect.close(
        (x * outcome.grad).sum(dim=-1),
        0.0,
        within=1e-4,
        symptom="making a row longer seems to change the output",
        cause="Does the gradient flow through the root mean square too (no detach, no no_grad, no .data)?",
    )


@pytest.mark.points(0)
def test_rmsnorm_trains_its_gain(student):
    draw = Draw(13)
    x, upstream = draw.normal(5, 6), draw.normal(5, 6)
    outcome = rmsnorm(student, torch.ones(6)).run(x, upstream=upstream)
    cause = "Is self.weight itself in the product, and not its .data or a copy?"
    expect.that(outcome.grads.get("weight") is not None, "no gradient reaches the gain", cause)
    expected = (upstream * outcome.output).sum(dim=0)
    expect.close(outcome.grads["weight"], expected, 1e-4, "the gain's gradient is wrong", cause)


@pytest.mark.points(0)
def test_rmsnorm_accepts_any_rank(student):
    draw = Draw(14)
    x, gain = draw.normal(2, 3, 1, 5), draw.gain(5)
    norm = rmsnorm(student, gain)
    whole = norm(x)
    expect.tensor(whole, x.shape)
    cause = "Does the code count axes from the end (-1), and name no rank?"
    for part, same in ((x[0], whole[0]), (x[0, 0], whole[0, 0]), (x[0, 0, 0], whole[0, 0, 0]), (x[:1], whole[:1])):
        y = norm(part)
        expect.tensor(y, part.shape, f"the output for an input of shape {tuple(part.shape)}")
        expect.close(y, same, 1e-5, f"an input of shape {tuple(part.shape)} gives another result", cause)


@pytest.mark.points(0)
def test_rmsnorm_accepts_strided_input(student):
    draw = Draw(15)
    x, gain = draw.normal(1, 3, 4, 6).repeat(2, 1, 1, 1), draw.gain(6)
    same_in_any_layout(rmsnorm(student, gain), x, layouts=("transposed", "expanded"))  # as the attention has its heads


@pytest.mark.points(0)
def test_rmsnorm_is_the_same_in_training(student):
    draw = Draw(301)
    x, gain = draw.normal(2, 3, 6, std=2.0), draw.gain(6)
    same_in_training(rmsnorm(student, gain), (x,), draw.normal(2, 3, 6), within=1e-5)


@pytest.mark.points(0)
def test_rmsnorm_accepts_one_channel_and_no_rows(student):
    draw = Draw(302)
    value = draw.real(3.0, 1.0, 9.0)
    y = rmsnorm(student, torch.tensor([0.5]), eps=1e-9)(torch.tensor([[value], [-value]]))
    cause = "With D = 1 the root mean square is the size of the one number. Does a squeeze drop its axis?"
    expect.close(
        y, torch.tensor([[0.5], [-0.5]]), 1e-5, "with one channel the result is not the gain with x's sign", cause
    )
    empty = rmsnorm(student, draw.gain(5))(torch.zeros(0, 3, 5))
    expect.tensor(empty, (0, 3, 5), "the output for a batch of no rows")


@pytest.mark.points(0)
def test_rmsnorm_has_no_longest_text(student):
    draw = Draw(303)
    norm, x = rmsnorm(student, draw.gain(4)), draw.normal(1, 1_100, 4)
    y = norm(x)
    expect.tensor(y, x.shape)
    cause = "Is there a buffer or a loop of a fixed length?"
    expect.close(y[:, -3:], norm(x[:, -3:]), 1e-5, "the last of 1,100 tokens come out wrong", cause)


@pytest.mark.points(0)
def test_rmsnorm_tells_axes_of_equal_size_apart(student):
    draw = Draw(304)
    norm, x = rmsnorm(student, draw.gain(4)), draw.normal(4, 4, 4, std=2.0)
    cause = "Is the axis named by its place (-1), and not found by its size?"
    expect.close(norm(x), norm(x.view(16, 4)).view(4, 4, 4), 1e-5, "with B = T = D the values are others", cause)


@pytest.mark.points(0)
def test_rmsnorm_takes_a_gain_of_any_dtype(student):
    draw = Draw(305)
    x, gain = draw.normal(3, 8), draw.gain(8).bfloat16().float()
    exact = rmsnorm(student, gain)(x)
    for dtype in (torch.float32, torch.float16):
        y = rmsnorm(student, gain).bfloat16()(x.to(dtype))
        expect.tensor(y, x.shape, f"the output for a {dtype} input and a bf16 gain", dtype)
        expect.close(y, exact, 0.05, "with a bf16 gain the values are others", "Is the result cast back to x's dtype?")


@pytest.mark.points(0)
def test_rmsnorm_objects_do_not_meet(student):
    draw, answer = Draw(306), stored("modules")
    objects_do_not_meet(
        lambda: rmsnorm(student, draw.gain(5), eps=0.5),
        (draw.normal(2, 5, std=0.3),),
        lambda: rmsnorm(student, answer["rmsnorm.weight"], eps=1e-3)(answer["rmsnorm.x"]),
        answer["rmsnorm.y"],
    )


@pytest.mark.points(0)
def test_rmsnorm_takes_rows_of_any_size(student):
    draw = Draw(307)
    rows = draw.normal(1, 6).abs() + 0.5
    for size in (1e-10, 1e-4, 1e10):
        x = rows * size
        y = rmsnorm(student, torch.ones(6))(x)
        expect.tensor(y, x.shape)
        expected = x.double() / (x.double().pow(2).mean(dim=-1, keepdim=True) + 1e-5).sqrt()
        cause = "Is something clamped, or squared once more than needed? fp32 ends at 3e38."
        expect.close(y / expected, 1.0, 1e-3, f"a row of entries near {size:g} is off by a factor", cause)


@pytest.mark.points(0)
def test_rmsnorm_leaves_torch_as_it_was(student):
    rmsnorm(student, torch.ones(3)).run(torch.ones(2, 3), upstream=torch.ones(2, 3), training=True)
    leaves_torch_as_it_was(student, "modules")


@pytest.mark.points(0)
def test_rmsnorm_follows_its_device(student):
    part = rmsnorm(student, torch.ones(6)).to_meta()
    expect.stays_on_meta(lambda: part(torch.empty(2, 6, device="meta")), (2, 6))


@pytest.mark.points(0)
def test_rmsnorm_of_a_centred_row_is_layernorm(student):
    x = torch.cat((torch.tensor([[3.0, 4.0]]).repeat(1, 3), Draw(16).normal(4, 6, mean=2.0)))  # (5, D)
    y = rmsnorm(student, torch.ones(6), eps=1e-5)(x - x.mean(dim=-1, keepdim=True))
    expect.tensor(y, x.shape)
    cause = "Is the root mean square all that the norm divides by? LayerNorm is this norm after a projection."
    layernorm = torch.nn.functional.layer_norm(x, (6,), eps=1e-5)  # [3, 4] becomes [-1, 1]
    expect.close(y, layernorm, 1e-4, "RMSNorm of a centred row is not LayerNorm of the row", cause)
    expect.close(y.norm(dim=-1), 6**0.5, 1e-3, "the result does not lie on the sphere of radius sqrt(D)", cause)


@pytest.mark.points(0)
def test_rmsnorm_is_your_own(student):
    called = rmsnorm(student, torch.ones(4)).counted(torch.ones(4))["ready_made"]
    ready_made = {"rms_norm", "RMSNorm"}
    cause = "Can you write it from pow, mean, rsqrt and a product?"
    expect.avoids(student.taken_from_torch("modules", ready_made), cause)
    symptom = "RMSNorm calls torch's ready-made one, which is the exercise itself"
    expect.that(called == 0, symptom, cause, "no such call", called)


@pytest.mark.points(1)
def test_rmsnorm_matches_stored_answers(student):
    answer = stored("modules")
    y = rmsnorm(student, answer["rmsnorm.weight"], eps=1e-3)(answer["rmsnorm.x"])
    cause = "Which of the tests above is red? All green: compare your formula with the header, sign by sign."
    expect.close(y, answer["rmsnorm.y"], 1e-4, "RMSNorm's output differs from the stored answer", cause)
