"""Questions to softcap and to attention.py with cfg.attn_softcap (bonus).

B batch, T query length, S key length, D width, N query heads, K key/value heads, H head size, L layers. A part
that the code does not look at yet counts as not started, not as wrong.
"""

import math

import pytest
import torch

from machinery import expect
from machinery.attending import (
    attention,
    follows_long_texts,
    gradients_match_stored,
    matches_stored,
    narrow,
    same_for_any_number_of_heads,
    sees_the_past,
    weight_of_token_0,
    window_is_a_slice,
    windowed_mask,
)
from machinery.draw import Draw, attention_shapes, model_shapes, no_turn, tiny
from machinery.kinds import same_in_any_layout, same_in_training, same_with_gradients


@pytest.mark.points(2)
def test_softcap_values(student):
    z = torch.tensor([1.0, 10.0, 200.0, 60.0, -60.0, 0.0])
    expected = torch.tensor([0.9998667, 9.8687660, 49.9664650, 41.6827305, -41.6827305, 0.0])
    cause, cap = "Is it cap * tanh(z / cap)?", Draw(125).real(50.0, 30.0, 80.0)
    expected, z = expected * (cap / 50), z * (cap / 50)  # the curve keeps its form
    expect.close(student.softcap(z, cap), expected, 1e-3, f"a value with cap {cap:g} is wrong", cause)
    expect.close(student.softcap(torch.ones(1), 2.0), 0.9242343, 1e-4, "softcap(1, 2) is wrong", cause)


@pytest.mark.points(0)
def test_softcap_keeps_shape_dtype_and_input(student):
    z = Draw(121).normal(2, 3, 4, std=5.0)
    outcome = student.softcap.run(z, 2.0)
    expect.tensor(outcome.output, z.shape, "softcap's output", torch.float32)
    expect.identical(outcome.inputs[0], z, "the caller's scores were changed", "Is there an operation in place?")
    expect.tensor(student.softcap(z.bfloat16(), 2.0), z.shape, "softcap's bf16 output", torch.bfloat16)
    cause = "Does a cap of None give z back as it is?"
    expect.identical(student.softcap(z, None), z, "without a cap the scores change", cause)


@pytest.mark.points(0)
def test_softcap_lets_the_gradient_through(student):
    cap = Draw(126).real(50.0, 30.0, 80.0)
    z = torch.tensor([0.0, 60.0]) * (cap / 50)
    outcome = student.softcap.run(z, cap, upstream=torch.ones(2))
    cause = "Is the curve smooth? A clamp has no gradient above the cap."
    expect.that(outcome.grad is not None, "no gradient reaches the scores", cause)
    expect.close(outcome.grad, torch.tensor([1.0, 0.3050199]), 1e-3, "the gradient at 0 and 60 is wrong", cause)


@pytest.mark.points(2)
def test_softcap_is_applied_after_the_scale(student):
    student.softcap(torch.ones(1), 2.0)
    # a scaled score of 2: capped at 2 it is 2 tanh(1), capped at 4 it is 4 tanh(1/2): 0.8210060 and 0.8639463
    for number, public in enumerate((2.0, 4.0)):
        cap = Draw(127 + number).real(public, 1.5, 5.0)
        expected = 1 / (1 + math.exp(-cap * math.tanh(2 / cap)))
        got = weight_of_token_0(student, narrow(attn_softcap=cap), 2.0)
        cause = "Is cfg.attn_softcap applied to the scores after the division by sqrt(H), before the softmax?"
        expect.close(got, expected, 1e-4, f"the weight at a scaled score of 2 with cap {cap} is wrong", cause)


@pytest.mark.points(1)
def test_softcap_is_applied_before_the_mask(student):
    student.softcap(torch.ones(1), 2.0)
    cfg, draw = tiny(attn_softcap=2.0), Draw(122)
    part = attention(student, cfg, draw.weights(attention_shapes(cfg)))
    x = draw.normal(3, 9, 36)
    other = x.clone()
    other[:, 3:] = draw.normal(3, 6, 36, std=9.0)
    cause = "Is the mask applied after the cap? tanh of minus infinity is -1, which can be seen."
    y = part(x, *no_turn(9, 8))
    expect.close(part(other, *no_turn(9, 8))[:, :3], y[:, :3], 1e-5, "with a cap the future shows", cause)
    sees_the_past(part, x, no_turn(9, 8), y)


@pytest.mark.points(1)
@pytest.mark.needs("rope")
def test_softcap_of_final_logits(student):
    student.softcap(torch.ones(1), 2.0)
    weights, tokens = Draw(123).weights(model_shapes(tiny())), Draw(124).tokens(2, 5, V=61)
    plain = student.LanguageModel(tiny()).load(weights)(tokens)
    capped = student.LanguageModel(tiny(final_softcap=3.0)).load(weights)(tokens)
    cause = "Is it 3 tanh(z / 3), smooth and once?"
    expect.close(capped, 3 * (plain / 3).tanh(), 1e-4, "the final logits with cap 3 are wrong", cause)
    expect.differ(capped, plain, 0.01, "the final logits have no cap", cause)


def capped(student, seed, **changes):
    """An attention with a cap that bites, its draw and the input."""
    student.softcap(torch.ones(1), 2.0)
    cfg, draw = tiny(attn_softcap=2.0, **changes), Draw(seed)
    return draw, attention(student, cfg, draw.weights(attention_shapes(cfg))), draw.normal(2, 6, 36)


@pytest.mark.points(0)
def test_softcap_is_the_same_in_training(student):
    draw, part, x = capped(student, 401)
    same_in_training(part, (x, *no_turn(6, 8)), draw.normal(2, 6, 36))
    z = draw.normal(2, 3, std=9.0)
    same_with_gradients(student.softcap, (z, 2.0), draw.normal(2, 3))


@pytest.mark.points(0)
@pytest.mark.needs("rope")
def test_softcap_gradients_match_stored_answers(student):
    student.softcap(torch.ones(1), 2.0)
    gradients_match_stored(student, "depth", "softcap", tiny(attn_softcap=2.0))


@pytest.mark.points(0)
def test_softcap_works_for_any_number_of_heads(student):
    student.softcap(torch.ones(1), 2.0)
    same_for_any_number_of_heads(student, 402, tiny(attn_softcap=2.0))


@pytest.mark.points(0)
@pytest.mark.needs("window")
def test_softcap_works_with_a_window(student):
    student.softcap(torch.ones(1), 2.0)
    windowed_mask(student, 5, 5, 2)
    window_is_a_slice(student, 403, attn_softcap=2.0)
    got = weight_of_token_0(student, narrow(attn_softcap=2.0, windows=2), 2.0)
    cause = "Is the cap in force with a window too?"
    expected = 1 / (1 + math.exp(-2 * math.tanh(1)))
    expect.close(got, expected, 1e-4, "with a window the scores are not capped", cause)


@pytest.mark.points(0)
def test_softcap_has_no_longest_text(student):
    student.softcap(torch.ones(1), 2.0)
    follows_long_texts(student, 404, attn_softcap=2.0)


@pytest.mark.points(0)
def test_softcap_tells_axes_of_equal_size_apart(student):
    draw, part, _ = capped(student, 405, N=4, K=2, D=16, H=4)
    x, cause = draw.normal(4, 5, 16), "Is every axis named by its place, and none found by its size?"
    got, fewer = part(x[:, :4], *no_turn(4, 4)), part(x[:3], *no_turn(5, 4))
    expect.close(got[:3], fewer[:, :4], 1e-4, "with a cap and B = N = T = H the values are others", cause)


@pytest.mark.points(0)
def test_softcap_runs_in_bf16_and_fp64(student):
    draw, part, x = capped(student, 406)
    fine = part(x, *no_turn(6, 8))
    cause = "With a cap, does every tensor that you make inside take x's dtype and device?"
    for dtype, cast in ((torch.float64, "double"), (torch.bfloat16, "bfloat16")):
        y = getattr(part.copy(), cast)()(x.to(dtype), *no_turn(6, 8))
        expect.tensor(y, x.shape, f"the output of a {dtype} attention with a cap", dtype)
        off = (y.double() - fine).norm() / fine.norm()
        expect.close(off, 0.0, 0.2, f"with a cap the {dtype} output is far off", cause)
    table = torch.empty(6, 4, device="meta")
    expect.stays_on_meta(lambda: part.to_meta()(torch.empty(2, 6, 36, device="meta"), table, table), (2, 6, 36))


@pytest.mark.points(0)
def test_softcap_accepts_strided_and_empty_input(student):
    z = Draw(407).normal(1, 3, 4, 5, std=3.0).repeat(2, 1, 1, 1)
    same_in_any_layout(student.softcap, z, 2.0, layouts=("transposed", "expanded"))
    expect.tensor(student.softcap(torch.zeros(2, 0), 2.0), (2, 0), "softcap of no scores")


@pytest.mark.points(0)
def test_softcap_of_any_size(student):
    z = torch.tensor([-1e10, 1e10, 3e38])
    cause = "Is it a tanh that can't overflow?"
    y = student.softcap(z, 50.0)
    expect.close(y / torch.tensor([-50.0, 50.0, 50.0]), 1.0, 1e-3, "a huge score does not come out as the cap", cause)


@pytest.mark.points(0)
@pytest.mark.needs("rope")
def test_softcap_matches_stored_answers(student):
    student.softcap(torch.ones(1), 2.0)
    matches_stored(student, "softcap", tiny(attn_softcap=2.0))
