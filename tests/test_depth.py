"""The bonus parts of modules.py, attention.py and budget.py, each switched on by the configuration.

B batch, T query length, S key length, D width, N query heads, K key/value heads, H head size,
L layers. A part that the code does not look at yet counts as not started, not as wrong.
"""

import math

import pytest
import torch

import expect
from draw import (
    Draw,
    added_by_shapes,
    attention_shapes,
    block_shapes,
    drawn_like,
    drawn_sizes,
    model_shapes,
    no_turn,
    tiny,
)
from nanolm.config import ModelConfig, preset
from nanolm.subject import NotStarted, StudentError
from stored import stored
from test_attention import attention, picture, right_picture, sees_the_past, turn


def not_started(part, what):
    raise NotStarted(part, f"{what} is not started. Check it with: pytest tests/test_depth.py -k {part}")


def one_score(cfg, score):
    """Weights with which token 1 scores `score` against token 0 (before any cap or norm) and 0 against itself.

    Token t is unit vector t. Output 0 of token 1 is then the weight that it gives token 0.
    """
    weights = {name: torch.zeros(shape) for name, shape in attention_shapes(cfg).items()}
    size = (score * math.sqrt(cfg.H)) ** 0.5
    weights["w_q.weight"][0, 1] = size
    weights["w_k.weight"][0, 0] = size
    weights["w_v.weight"][3, 0] = 1.0
    weights["w_o.weight"][0, 3] = 1.0
    for name in ("q_norm.weight", "k_norm.weight"):
        if name in weights:
            weights[name] = torch.ones(cfg.H)
    return weights


def weight_of_token_0(student, cfg, score):
    y = attention(student, cfg, one_score(cfg, score))(torch.eye(cfg.D)[None, :2], *no_turn(2, cfg.H))
    expect.tensor(y, (1, 2, cfg.D))
    return y[0, 1, 0]


def narrow(**changes):
    return ModelConfig(L=1, V=7, D=6, N=2, K=1, H=10, ffn_dim=8, norm_eps=1e-6).but(**changes)


# RMSNorm backward -------------------------------------------------------------------------------


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


# QK-norm ----------------------------------------------------------------------------------------


def drawn_qknorm(student, seed, **scaled):
    """A QK-norm attention; `scaled` multiplies rows of a matrix: name -> (rows, factor)."""
    cfg = tiny(qk_norm=True, norm_eps=1e-6)
    draw = Draw(seed)
    weights = draw.weights(attention_shapes(cfg))
    x = draw.normal(2, 5, 36)
    for name, (rows, factor) in scaled.items():
        weights[f"{name}.weight"][rows] *= factor
    part = attention(student, cfg, weights)
    if not scaled:
        plain = attention(student, cfg.but(qk_norm=False), {n: w for n, w in weights.items() if "norm" not in n})
        if float((part(x, *no_turn(5, 8)) - plain(x, *no_turn(5, 8))).abs().max()) < 1e-5:
            not_started("qknorm", "QK-norm in GroupedQueryAttention.forward")
    return x, part


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


@pytest.mark.points(1)
@pytest.mark.needs("rope", "rmsnorm")
def test_qknorm_matches_stored_answers(student):
    drawn_qknorm(student, 117)
    full_comparison(student, "qknorm", tiny(qk_norm=True))


def full_comparison(student, name, cfg):
    answer = stored("depth")
    part = attention(student, cfg, {key: answer[f"{name}.{key}"] for key in attention_shapes(cfg)})
    y = part(*(answer[f"{name}.{key}"] for key in ("x", "cos", "sin")))
    expect.close(
        y,
        answer[f"{name}.y"],
        within=1e-3,
        symptom=f"the attention with {name} differs from the stored answer",
        cause="Which of the tests above is red? All green: compare the order of the steps with the header.",
    )


# Soft-capping -----------------------------------------------------------------------------------


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
    full_comparison(student, "softcap", tiny(attn_softcap=2.0))


# Sliding window ---------------------------------------------------------------------------------


def windowed_mask(student, T, S, window):
    mask = student.causal_mask(T, S, window)
    if picture(student.causal_mask(3, 3, 1)) == picture(student.causal_mask(3, 3)):
        not_started("window", "the window of causal_mask")
    expect.tensor(mask, (T, S), f"causal_mask({T}, {S}, {window})", torch.bool)
    return mask


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
    full_comparison(student, "window", tiny(windows=3))


# The cache --------------------------------------------------------------------------------------


def drawn_cache(student, seed, T=7, **changes):
    """An attention, its input with tables, and its output for the whole text at once."""
    cfg, draw = tiny(**changes), Draw(seed)
    part = attention(student, cfg, draw.weights(attention_shapes(cfg)))
    x, tables = draw.normal(2, T, 36), turn(torch.arange(T))
    whole = part(x, *tables)
    sees_the_past(part, x, tables, whole)  # an attention that mixes no tokens needs no cache
    return part, (x, *tables), whole


def in_chunks(part, given, chunks, window=None):
    outcome = part.cached(*given, chunks=chunks, window=window)
    if outcome.cache_length == 0:
        not_started("cache", "the cache in GroupedQueryAttention.forward")
    return outcome


ONE_BY_ONE = "Are new keys and values appended after RoPE, and do the T queries see all S keys up to their own?"


@pytest.mark.points(2)
@pytest.mark.needs("rope")
def test_cache_decode_matches_the_whole(student):
    part, given, whole = drawn_cache(student, 141)
    y = in_chunks(part, given, (3, 1, 1, 1, 1)).output
    expect.tensor(y, whole.shape)
    expect.close(y, whole, 1e-3, "token by token the output differs from the whole text's", ONE_BY_ONE)


@pytest.mark.points(2)
@pytest.mark.needs("rope")
def test_cache_chunked_prefill_matches_the_whole(student):
    part, given, whole = drawn_cache(student, 142)
    y = in_chunks(part, given, (3, 2, 2)).output
    expect.tensor(y, whole.shape)
    cause = "With T < S, is the mask aligned so that the T queries are the last T of the S keys?"
    expect.close(y, whole, 1e-3, "in chunks of 3, 2, 2 the output differs from the whole text's", cause)


@pytest.mark.points(1)
@pytest.mark.needs("rope")
def test_cache_stores_K_heads(student):
    part, given, _ = drawn_cache(student, 143)
    (k, v), cause = in_chunks(part, given, (3, 4)).cache[0], "Do you append before repeat_kv?"
    expect.that(k.shape[1] == 2, "the cache does not hold K heads", cause)
    expect.tensor(k, (2, 2, 7, 8), "the cached keys")
    expect.tensor(v, (2, 2, 7, 8), "the cached values")


@pytest.mark.points(1)
@pytest.mark.needs("rope")
def test_cache_stores_turned_keys(student):
    part, (x, cos, sin), _ = drawn_cache(student, 144)
    turned_k, turned_v = in_chunks(part, (x, cos, sin), (7,)).cache[0]
    plain_k, plain_v = in_chunks(part, (x, *no_turn(7, 8)), (7,)).cache[0]
    cause = "Is RoPE applied to the new keys first, and only once, and never to values?"
    expect.differ(turned_k[:, :, 1:], plain_k[:, :, 1:], 0.01, "the cached keys are not turned", cause)
    expect.close(turned_k.norm(dim=-1), plain_k.norm(dim=-1), 1e-3, "cached keys have another length", cause)
    expect.close(turned_v, plain_v, 1e-5, "the cached values depend on positions", cause)


@pytest.mark.points(0)
@pytest.mark.needs("rope")
def test_cache_counts_every_token_once(student):
    part, given, _ = drawn_cache(student, 145)
    got = in_chunks(part, given, (3, 1, 3)).cache_length
    expect.same(got, 7, "after 7 tokens the cache has another length", "Is append called once a forward?")


@pytest.mark.points(1)
@pytest.mark.needs("rope", "window")
def test_cache_works_with_a_window(student):
    part, given, _ = drawn_cache(student, 146, T=9, windows=3)
    if picture(student.causal_mask(3, 3, 1)) == picture(student.causal_mask(3, 3)):
        not_started("window", "the window of causal_mask")
    whole = part(*given)
    for chunks in ((4, 1, 1, 1, 1, 1), (2, 5, 2)):
        y = in_chunks(part, given, chunks, window=3).output
        cause = "Is S the number of keys that append gave back (not the number of tokens so far)?"
        expect.close(y, whole, 1e-3, f"with a window of 3, chunks of {chunks} differ from the whole text", cause)


@pytest.mark.points(1)
@pytest.mark.needs("rope")
def test_cache_starts_empty_for_each_prompt(student):
    part, given, whole = drawn_cache(student, 147)
    first = in_chunks(part, given, (4, 3)).output
    cause = "Does the module keep keys of its own from call to call? Only the cache that is handed in may."
    expect.close(in_chunks(part, given, (4, 3)).output, first, 1e-5, "a second prompt sees the first", cause)
    expect.close(part(*given), whole, 1e-5, "after cached calls a plain forward differs", cause)


@pytest.mark.points(2)
@pytest.mark.needs("rope")
def test_cache_serves_the_whole_model(student):
    weights, tokens = Draw(148).weights(model_shapes(tiny())), Draw(149).tokens(2, 9, V=61)
    model = student.LanguageModel(tiny()).load(weights)
    whole = model(tokens)
    part, given, _ = drawn_cache(student, 152)
    in_chunks(part, given, (7,))  # an attention without a cache: not started
    outcome = model.cached(tokens, chunks=(4, 1, 1, 3))
    cause = "Is the cache handed from Block.forward to the attention, each layer its own?"
    expect.close(outcome.output, whole, 1e-2, "the model's logits with a cache differ", cause)
    expect.same(outcome.cache_length, 9, "after 9 tokens a layer's cache has another length", cause)


@pytest.mark.points(0)
@pytest.mark.needs("rope", "rmsnorm", "qknorm")
def test_cache_works_with_qknorm(student):
    drawn_qknorm(student, 150)
    part, given, whole = drawn_cache(student, 151, qk_norm=True)
    y = in_chunks(part, given, (3, 1, 1, 2)).output
    cause = "Are only the new keys normed, before they are appended?"
    expect.close(y, whole, 1e-3, "with QK-norm the cached output differs from the whole text's", cause)


# The 2019 parts in the budget -------------------------------------------------------------------


def added_to_2019(cfg, less):
    """By how many numbers `cfg` is more than `less`, where V, T_max and F differ and the FFN is GELU with biases."""
    rows = (cfg.V - less.V) * (1 if cfg.tie_embeddings else 2) + cfg.T_max - less.T_max
    return rows * cfg.D + cfg.L * (cfg.F - less.F) * (2 * cfg.D + 1)


def recipe_is_started(student):
    modern, learned = tiny(), tiny(positions="learned", norm="layernorm", ffn="gelu", bias=True)
    if student.count_parameters(modern) == student.count_parameters(learned):
        not_started("recipe", "the 2019 parts in count_parameters")


def counted(student, cfg, expected, what, cause):
    got = student.count_parameters(cfg)
    difference = f"{got} ({got - expected:+,})" if isinstance(got, int) else repr(got)
    expect.that(got == expected, f"{what} comes out wrong", cause, f"{expected:,}", difference)


@pytest.mark.points(2)
@pytest.mark.needs("budget")
def test_recipe_counts_gpt2_small(student):
    recipe_is_started(student)
    cause = "GELU has two matrices, everything has a bias, LayerNorm too, and positions are a table of T_max * D."
    cfg = drawn_like("gpt2-small", 198)
    counted(student, cfg, 124_439_808 + added_to_2019(cfg, preset("gpt2-small")), "GPT-2 small", cause)


@pytest.mark.points(1)
@pytest.mark.needs("budget")
def test_recipe_tying_saves_a_third_of_gpt2(student):
    recipe_is_started(student)
    small, untied = preset("gpt2-small"), drawn_like("gpt2-small", 199).but(tie_embeddings=False)
    expected = 163_037_184 + added_to_2019(untied, small.but(tie_embeddings=False))
    counted(student, untied, expected, "GPT-2 small untied", "Is the head V * D more?")
    saved, tied = small.V * small.D, student.count_parameters(small)
    expect.same(saved, 38_597_376, "tying saves another number", "V * D?")
    expect.close(saved / tied, 0.3101690, 1e-4, "tying does not save 31.0% of the tied model", "Is the total right?")
    expect.close(saved / (tied + saved), 0.2367397, 1e-4, "nor 23.7% of the untied one", "Is the total right?")


VANILLA = ModelConfig(
    L=32, D=4_096, N=32, V=128_000, T_max=8_192, tie_embeddings=True, ffn_dim=16_384,
    norm="layernorm", positions="learned", ffn="gelu", bias=True,
)  # fmt: skip
TOGGLES = {  # what each toggle of the recipe moves in the 7B-class shape
    "learned positions to RoPE": ({"positions": "rope"}, -33_554_432),
    "K = 32 to 8": ({"K": 8}, -805_502_976),
    "no biases": ({"bias": False}, -(32 * (4 * 4_096 + 16_384 + 4_096 + 2 * 4_096) + 4_096)),
}


@pytest.mark.points(2)
@pytest.mark.needs("budget")
def test_recipe_counts_the_7b_shape(student):
    recipe_is_started(student)
    cause = "Which toggle is off: learned positions, MHA, biases, GELU at 4D, LayerNorm?"
    draw = Draw(200)
    vanilla = VANILLA.but(V=draw.whole(VANILLA.V, 50_000, 200_000), T_max=draw.whole(VANILLA.T_max, 1_000, 9_000))
    expected = 7_002_005_504 + added_to_2019(vanilla, VANILLA)
    counted(student, vanilla, expected, "the vanilla 7B-class shape", cause)
    modern = vanilla.but(K=8, ffn_dim=11_008, ffn="swiglu", norm="rmsnorm", bias=False, positions="rope")
    expected = 6_195_253_248 + (vanilla.V - VANILLA.V) * VANILLA.D
    counted(student, modern, expected, "the modern 7B-class shape", cause)


@pytest.mark.points(0)
@pytest.mark.needs("budget")
def test_recipe_toggles_move_parameters(student):
    recipe_is_started(student)
    for name, (change, moves) in TOGGLES.items():
        counted(
            student, VANILLA.but(**change), 7_002_005_504 + moves, f"the vanilla shape with {name}", "What changes?"
        )


@pytest.mark.points(0)
@pytest.mark.needs("budget")
def test_recipe_layernorm_has_a_bias_only_with_bias(student):
    recipe_is_started(student)
    modern = drawn_sizes(191)
    base = modern.but(norm="layernorm")  # tiny: L = 2, D = 36, five norms
    cause = "Has LayerNorm 2D parameters with biases and D without?"
    counted(student, base, student.count_parameters(modern), "LayerNorm without biases", cause)
    attention_biases = modern.L * (modern.N * modern.H + 2 * modern.K * modern.H + modern.D)
    norms = 2 * modern.L + 1
    expected = student.count_parameters(modern) + attention_biases + norms * modern.D
    counted(student, base.but(bias=True), expected, "LayerNorm with biases", cause)


@pytest.mark.points(1)
@pytest.mark.needs("budget")
def test_recipe_counts_qknorm_and_sandwich(student):
    recipe_is_started(student)
    cause = "Are there two gains of H a layer with QK-norm, and four norms a layer in a sandwich?"
    cfg = drawn_sizes(193)
    expected = student.count_parameters(cfg) + 2 * cfg.L * cfg.H
    counted(student, cfg.but(qk_norm=True), expected, "the tiny model with QK-norm", cause)
    gemma = drawn_like("gemma2-2b", 201)
    more = added_by_shapes(gemma, preset("gemma2-2b"))
    counted(student, gemma, 2_614_341_888 + more, "Gemma 2 2B", cause)


@pytest.mark.points(0)
@pytest.mark.needs("budget", "qknorm")
def test_recipe_counts_what_is_built(student):
    recipe_is_started(student)
    cause = "Which parameter of the built model does the formula leave out, or count twice?"
    sizes = drawn_sizes(192, L=2)
    for changes in (
        {},
        {"tie_embeddings": True, "K": sizes.N},
        {"norm": "layernorm", "bias": True},
        {"ffn": "geglu", "bias": True},
        {"positions": "learned", "ffn": "gelu", "bias": True},
        {"ffn": "geglu", "norm_position": "sandwich", "qk_norm": True},
    ):
        cfg = sizes.but(**changes)
        built = sum(math.prod(shape) for shape in student.LanguageModel(cfg).shapes().values())
        counted(student, cfg, built, f"the tiny model with {changes or 'no change'}", cause)
