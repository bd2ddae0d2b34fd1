"""Questions to attention.py with a window: the mask, the attention, the layers (bonus).

B batch, T query length, S key length, D width, N query heads, K key/value heads, H head size, L layers. A part
that the code does not look at yet counts as not started, not as wrong.
"""

import pytest

from machinery import expect
from machinery.attending import attention, matches_stored, picture, right_picture, windowed_mask
from machinery.draw import Draw, attention_shapes, block_shapes, model_shapes, no_turn, tiny
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
def test_window_of_a_block_without_a_number_is_the_first(student):
    windowed_mask(student, 5, 5, 2)
    cfg, draw = tiny(windows=(2, None)), Draw(135)
    weights, x = draw.weights(block_shapes(cfg)), draw.normal(2, 6, 36)
    given = (x, *no_turn(6, 8))
    got, expected = (student.Block(cfg, *layer).load(weights)(*given) for layer in ((), (0,)))
    expect.tensor(expected, x.shape, "the output of a block of layer 0")
    cause = "Is layer 0 the default of Block's __init__, and is the number handed to the attention?"
    expect.close(got, expected, 1e-5, "without a number a block is not layer 0", cause)


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
@pytest.mark.needs("rope")
def test_window_matches_stored_answers(student):
    windowed_mask(student, 5, 5, 2)
    matches_stored(student, "window", tiny(windows=3))
