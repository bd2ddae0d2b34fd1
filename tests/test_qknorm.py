"""Questions to attention.py with cfg.qk_norm: queries and keys normed by head, before RoPE (bonus).

B batch, T query length, S key length, D width, N query heads, K key/value heads, H head size, L layers. A part
that the code does not look at yet counts as not started, not as wrong.
"""

import math

import pytest
import torch

from machinery import expect
from machinery.attending import (
    drawn_qknorm,
    gradients_match_stored,
    matches_stored,
    narrow,
    same_for_any_number_of_heads,
    turn,
    weight_of_token_0,
    window_is_a_slice,
    windowed_mask,
)
from machinery.draw import Draw, attention_shapes, no_turn, tiny
from machinery.kinds import same_in_training

ALL = slice(None)


@pytest.mark.points(2)
@pytest.mark.needs("rmsnorm")
def test_qknorm_makes_the_size_of_projections_irrelevant(student):
    x, part = drawn_qknorm(student, 111)
    y = part(x, *no_turn(5, 8))
    for name in ("w_q", "w_k"):
        _, other = drawn_qknorm(student, 111, **{name: (ALL, 10.0)})
        cause = "Are both q and k normed before the scores?"
        expect.close(other(x, *no_turn(5, 8)), y, 1e-3, f"ten times {name} changes the output", cause)


@pytest.mark.points(1)
@pytest.mark.needs("rmsnorm")
def test_qknorm_is_per_head(student):
    x, part = drawn_qknorm(student, 112)
    y = part(x, *no_turn(5, 8))
    cause = "Does the norm run over H, after the split into heads (not over N * H, not over tokens)?"
    for name in ("w_q", "w_k"):
        _, other = drawn_qknorm(student, 112, **{name: (slice(0, 8), 10.0)})
        expect.close(other(x, *no_turn(5, 8)), y, 1e-3, f"a louder head 0 in {name} changes the others", cause)


@pytest.mark.points(1)
@pytest.mark.needs("rmsnorm")
def test_qknorm_leaves_values_alone(student):
    x, part = drawn_qknorm(student, 113)
    y = part(x, *no_turn(5, 8))
    _, other = drawn_qknorm(student, 113, w_v=(ALL, 10.0))
    cause = "Is V normed too? Only q and k are."
    expect.close(other(x, *no_turn(5, 8)), 10 * y, 1e-2, "ten times w_v does not give ten times the output", cause)


@pytest.mark.points(1)
@pytest.mark.needs("rope", "rmsnorm")
def test_qknorm_comes_before_rope(student):
    x, part = drawn_qknorm(student, 114)
    here = part(x, *turn(torch.arange(5)))
    cause = "Are q and k normed first and turned then? A gain after the turn breaks relative positions."
    there = part(x, *turn(torch.arange(5) + 3))
    expect.close(there, here, 1e-3, "moving every token by 3 positions changes the output", cause)


@pytest.mark.points(1)
@pytest.mark.needs("rmsnorm")
def test_qknorm_uses_both_gains(student):
    x, part = drawn_qknorm(student, 115)
    y = part(x, *no_turn(5, 8))
    for name in ("q_norm", "k_norm"):
        _, other = drawn_qknorm(student, 115)
        other.load({f"{name}.weight": torch.linspace(-1.0, 2.0, 8)})
        cause = f"Does {name} norm {name[0]}, and is it a module of its own?"
        expect.differ(other(x, *no_turn(5, 8)), y, 0.01, f"the gain of {name} has no effect", cause)


@pytest.mark.points(0)
@pytest.mark.needs("rmsnorm")
def test_qknorm_has_a_gain_for_each_of_the_two(student):
    drawn_qknorm(student, 118)
    cfg = tiny(qk_norm=True)
    part = student.GroupedQueryAttention(cfg)
    part(torch.ones(1, 2, 36), *no_turn(2, 8))
    expect.same(
        part.shapes(),
        attention_shapes(cfg),
        symptom="with QK-norm the attention does not have exactly the parameters of the contract",
        cause="Is __init__ as it was given: q_norm and k_norm, each with its own gain of H?",
    )


@pytest.mark.points(1)
@pytest.mark.needs("rmsnorm")
def test_qknorm_keeps_the_scale(student):
    drawn_qknorm(student, 116)
    # q and k point the same way: normed, their product is H, so the scaled score is sqrt(H) = 3.16
    cfg = narrow(qk_norm=True, H=2 * Draw(119).whole(5, 4, 9))
    got, expected = weight_of_token_0(student, cfg, 5.0), 1 / (1 + math.exp(-math.sqrt(cfg.H)))  # 0.9594047
    cause = "Is it an RMS norm (length sqrt(H)), with the division by sqrt(H) kept?"
    expect.close(got, expected, 1e-3, "the weight of the best match is wrong", cause)


@pytest.mark.points(0)
@pytest.mark.needs("rmsnorm")
def test_qknorm_is_the_same_in_training(student):
    x, part = drawn_qknorm(student, 391)
    same_in_training(part, (x, *no_turn(5, 8)), Draw(392).normal(2, 5, 36))


@pytest.mark.points(0)
@pytest.mark.needs("rope", "rmsnorm")
def test_qknorm_gradients_match_stored_answers(student):
    drawn_qknorm(student, 393)
    gradients_match_stored(student, "depth", "qknorm", tiny(qk_norm=True))


@pytest.mark.points(0)
@pytest.mark.needs("rmsnorm")
def test_qknorm_works_for_any_number_of_heads(student):
    drawn_qknorm(student, 394)
    same_for_any_number_of_heads(student, 395, tiny(qk_norm=True))


@pytest.mark.points(0)
@pytest.mark.needs("rmsnorm", "softcap")
def test_qknorm_works_with_a_cap(student):
    drawn_qknorm(student, 396)
    student.softcap(torch.ones(1), 2.0)
    cfg = narrow(qk_norm=True, attn_softcap=2.0)  # normed, the scaled score is sqrt(H); capped, 2 tanh(sqrt(H) / 2)
    got = weight_of_token_0(student, cfg, 5.0)
    cause = "With both, does the norm come first and the cap after the scale? Neither switches the other one off."
    expected = 1 / (1 + math.exp(-2 * math.tanh(math.sqrt(cfg.H) / 2)))
    expect.close(got, expected, 1e-3, "with QK-norm and a cap the weight of the best match is wrong", cause)


@pytest.mark.points(0)
@pytest.mark.needs("rmsnorm", "window")
def test_qknorm_works_with_a_window(student):
    drawn_qknorm(student, 397)
    windowed_mask(student, 5, 5, 2)
    window_is_a_slice(student, 398, qk_norm=True)


@pytest.mark.points(1)
@pytest.mark.needs("rope", "rmsnorm")
def test_qknorm_matches_stored_answers(student):
    drawn_qknorm(student, 117)
    matches_stored(student, "qknorm", tiny(qk_norm=True))
