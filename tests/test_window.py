"""Questions to attention.py with a window: the mask, the attention, the layers (bonus).

B batch, T query length, S key length, D width, N query heads, K key/value heads, H head size, L layers. A part
that the code does not look at yet counts as not started, not as wrong.
"""

import pytest
import torch

from machinery import expect
from machinery.attending import (
    attention,
    follows_long_texts,
    gradients_match_stored,
    matches_stored,
    picture,
    right_picture,
    same_for_any_number_of_heads,
    window_is_a_slice,
    windowed_mask,
)
from machinery.draw import Draw, attention_shapes, model_shapes, no_turn, tiny
from machinery.kinds import objects_do_not_meet, same_in_training
from nanolm.config import preset


@pytest.mark.points(2)
def test_window_counts_the_token_itself(student):
    cause = "Does a window of 3 show the token itself and the 2 before it?"
    draw = Draw(137)
    T = draw.whole(5, 6, 9)
    for window in (draw.whole(3, 2, 5), 1):
        expected = right_picture(T, T, window)  # T = 5, window 3: x.... / xx... / xxx.. / .xxx. / ..xxx
        got = picture(windowed_mask(student, T, T, window))
        expect.same(got, expected, f"the mask with window {window} is wrong (x = may attend)", cause)


@pytest.mark.points(1)
def test_window_is_causal(student):
    draw = Draw(139)
    T, window = draw.whole(6, 5, 9), draw.whole(3, 2, 4)
    mask = windowed_mask(student, T, T, window)
    cause = "Is the window cut out of the causal mask? |i - j| < w also shows the future."
    expect.that(not bool(mask.triu(1).any()), "with a window a token sees the future", cause)
    expect.that(bool(mask.diagonal().all()), "with a window a token does not see itself", cause)


@pytest.mark.points(1)
def test_window_aligns_queries_with_the_last_keys(student):
    draw = Draw(138)
    S, window = draw.whole(6, 6, 10), draw.whole(3, 2, 5)
    got, expected = picture(windowed_mask(student, 2, S, window)), right_picture(2, S, window)
    cause = "Are positions counted from the end: query t is token S - T + t?"
    symptom = f"2 queries over {S} keys with window {window} see the wrong tokens"  # here: ..xxx. / ...xxx
    expect.same(got, expected, symptom, cause)


@pytest.mark.points(0)
def test_window_wider_than_the_text_hides_nothing(student):
    got, expected = picture(windowed_mask(student, 4, 4, 9)), picture(student.causal_mask(4, 4))
    cause = "Is a window of 9 over 4 tokens the plain causal mask?"
    expect.same(got, expected, "a wide window changes the mask", cause)


@pytest.mark.points(1)
def test_window_reaches_the_attention(student):
    windowed_mask(student, 5, 5, 2)
    window, draw = Draw(140).whole(3, 2, 4), Draw(131)
    cfg = tiny(windows=window)
    part = attention(student, cfg, draw.weights(attention_shapes(cfg)))
    x = draw.normal(2, 6, 36)
    other = x.clone()
    other[:, 0] = draw.normal(2, 36, std=9.0)
    moved = (part(other, *no_turn(6, 8)) - part(x, *no_turn(6, 8))).abs().amax(dim=(0, 2))
    got = "".join("x" if float(m) > 1e-4 else "." for m in moved)
    cause = "Is self.window given to causal_mask in forward, also where the text is longer than the window?"
    expected = "x" * window + "." * (6 - window)
    expect.same(got, expected, "token 0 is seen by the wrong tokens (window 3, x = sees it)", cause)


@pytest.mark.points(1)
def test_window_belongs_to_its_layer(student):
    windowed_mask(student, 5, 5, 2)
    cfg, draw = tiny(windows=(2, None)), Draw(132)
    weights, x = draw.weights(attention_shapes(cfg)), draw.normal(2, 6, 36)
    whole = attention(student, cfg.but(windows=None), weights)(x, *no_turn(6, 8))
    cause = "Does each layer ask cfg.window_of(layer) with its own number?"
    local, everywhere = (student.GroupedQueryAttention(cfg, layer).load(weights)(x, *no_turn(6, 8)) for layer in (0, 1))
    expect.close(everywhere, whole, 1e-4, "layer 1, which has no window, hides tokens", cause)
    first = student.GroupedQueryAttention(cfg).load(weights)(x, *no_turn(6, 8))
    cause = "Is layer 0 the default of __init__, as it was given?"
    expect.close(first, local, 1e-5, "without a number an attention is not layer 0", cause)
    expect.differ(local, whole, 0.01, "layer 0, which has a window of 2, hides nothing", cause)


@pytest.mark.points(0)
@pytest.mark.needs("rope")
def test_window_reach_grows_by_layer(student):
    windowed_mask(student, 5, 5, 2)
    cfg = tiny(L=3, windows=3)
    model = student.LanguageModel(cfg).load(Draw(133).weights(model_shapes(cfg)))
    tokens = Draw(134).tokens(1, 12, V=61)
    other = tokens.clone()
    other[0, 0] = (tokens[0, 0] + 1) % 61
    moved = (model(other) - model(tokens)).abs().amax(dim=(0, 2))
    got = sum(float(m) > 1e-6 for m in moved)
    cause = "Does each of L layers reach w - 1 tokens further back: L (w - 1) + 1 in all?"
    expect.same(got, 3 * (3 - 1) + 1, "token 0 reaches a wrong number of tokens through 3 layers of window 3", cause)
    mistral = preset("mistral-7b")
    expect.same(mistral.L * (mistral.windows - 1) + 1, 131_041, "Mistral 7B's reach is wrong", cause)


@pytest.mark.points(0)
@pytest.mark.needs("rope")
def test_window_reaches_every_layer_of_the_model(student):
    windowed_mask(student, 5, 5, 2)
    cfg = tiny(windows=(1, 3))
    model = student.LanguageModel(cfg).load(Draw(135).weights(model_shapes(cfg)))
    tokens = Draw(136).tokens(1, 6, V=61)
    other = tokens.clone()
    other[0, 0] = (tokens[0, 0] + 1) % 61
    moved = (model(other) - model(tokens)).abs().amax(dim=(0, 2))
    got = "".join("x" if float(m) > 1e-6 else "." for m in moved)
    cause = "Does the block tell its attention which layer it is?"
    expect.same(got, "xxx...", "token 0 is seen by the wrong tokens (windows 1 and 3, x = sees it)", cause)


@pytest.mark.points(0)
def test_window_of_edge_sizes(student):
    cause = "Does query t, token S - T + t, see itself and the w - 1 tokens before it, also with one query?"
    for T, S, w in ((1, 4, 2), (1, 1, 1), (3, 4, 1), (4, 4, 4), (2, 5, 5), (2, 5, 6), (4, 5, 3), (5, 5, 4)):
        symptom = f"{T} queries over {S} keys with window {w} see the wrong tokens (x = may attend)"
        expect.same(picture(windowed_mask(student, T, S, w)), right_picture(T, S, w), symptom, cause)


@pytest.mark.points(0)
def test_window_has_no_longest_text(student):
    windowed_mask(student, 5, 5, 2)
    mask = student.causal_mask(3, 1_100, 1_050)
    expect.tensor(mask, (3, 1_100), "causal_mask(3, 1100, 1050)", torch.bool)
    cause = "Is there a mask of a fixed length that is cut to size?"
    counted = [int(row.sum()) for row in mask]
    expect.same(counted, [1_050] * 3, "three queries with a window of 1,050 see another number of keys", cause)
    follows_long_texts(student, 411, windows=1_029)


@pytest.mark.points(0)
def test_window_is_the_same_in_training(student):
    windowed_mask(student, 5, 5, 2)
    cfg, draw = tiny(windows=3), Draw(412)
    part = attention(student, cfg, draw.weights(attention_shapes(cfg)))
    same_in_training(part, (draw.normal(2, 6, 36), *no_turn(6, 8)), draw.normal(2, 6, 36))


@pytest.mark.points(0)
@pytest.mark.needs("rope")
def test_window_gradients_match_stored_answers(student):
    windowed_mask(student, 5, 5, 2)
    gradients_match_stored(student, "depth", "window", tiny(windows=3))


@pytest.mark.points(0)
def test_window_is_a_slice_of_the_text(student):
    windowed_mask(student, 5, 5, 2)
    window_is_a_slice(student, 413)


@pytest.mark.points(0)
def test_window_works_for_any_number_of_heads(student):
    windowed_mask(student, 5, 5, 2)
    same_for_any_number_of_heads(student, 414, tiny(windows=3))


@pytest.mark.points(0)
def test_window_tells_axes_of_equal_size_apart(student):
    windowed_mask(student, 5, 5, 2)
    cfg, draw = tiny(N=4, K=2, D=16, H=4, windows=4), Draw(415)
    part, x = attention(student, cfg, draw.weights(attention_shapes(cfg))), draw.normal(4, 6, 16)
    got, fewer = part(x[:, :4], *no_turn(4, 4)), part(x[:3], *no_turn(6, 4))
    cause = "Is every axis named by its place, and none found by its size?"
    expect.close(got[:3], fewer[:, :4], 1e-4, "with B = N = T = H = w the values are others", cause)


@pytest.mark.points(0)
def test_window_runs_in_bf16_and_on_its_device(student):
    windowed_mask(student, 5, 5, 2)
    cfg, draw = tiny(windows=3), Draw(416)
    part, x = attention(student, cfg, draw.weights(attention_shapes(cfg))), draw.normal(2, 6, 36)
    fine = part(x, *no_turn(6, 8))
    y = part.copy().bfloat16()(x.bfloat16(), *no_turn(6, 8))
    expect.tensor(y, x.shape, "the output of a bf16 attention with a window", torch.bfloat16)
    cause = "With a window, does every tensor that you make inside take x's dtype and device?"
    expect.close((y.float() - fine).norm() / fine.norm(), 0.0, 0.2, "with a window the bf16 output is far off", cause)
    table = torch.empty(6, 4, device="meta")
    expect.stays_on_meta(lambda: part.to_meta()(torch.empty(2, 6, 36, device="meta"), table, table), (2, 6, 36))


@pytest.mark.points(0)
def test_window_objects_do_not_meet(student):
    windowed_mask(student, 5, 5, 2)
    draw = Draw(417)
    weights, x = draw.weights(attention_shapes(tiny())), draw.normal(2, 6, 36)
    alone = attention(student, tiny(), weights)(x[:, 3:], *no_turn(3, 8))[:, -1]  # the last sees three tokens
    objects_do_not_meet(
        lambda: attention(student, tiny(windows=2), weights),
        (x, *no_turn(6, 8)),
        lambda: attention(student, tiny(windows=3), weights)(x, *no_turn(6, 8))[:, -1],
        alone,
    )


@pytest.mark.points(0)
@pytest.mark.needs("rope")
def test_window_matches_stored_answers(student):
    windowed_mask(student, 5, 5, 2)
    matches_stored(student, "window", tiny(windows=3))
