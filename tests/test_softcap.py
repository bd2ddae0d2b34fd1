"""Questions to softcap and to attention.py with cfg.attn_softcap (bonus).

B batch, T query length, S key length, D width, N query heads, K key/value heads, H head size, L layers. A part
that the code does not look at yet counts as not started, not as wrong.
"""

import math

import pytest
import torch

from machinery import expect
from machinery.attending import attention, matches_stored, narrow, sees_the_past, weight_of_token_0
from machinery.draw import Draw, attention_shapes, model_shapes, no_turn, tiny


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


@pytest.mark.points(0)
@pytest.mark.needs("rope")
def test_softcap_matches_stored_answers(student):
    student.softcap(torch.ones(1), 2.0)
    matches_stored(student, "softcap", tiny(attn_softcap=2.0))
