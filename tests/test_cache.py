"""Questions to attention.py and model.py with a cache: token by token as the whole text at once (bonus).

B batch, T query length, S key length, D width, N query heads, K key/value heads, H head size, L layers. A part
that the code does not look at yet counts as not started, not as wrong.
"""

import pytest
import torch

from machinery import expect
from machinery.attending import attention, drawn_qknorm, narrow, not_started, picture, sees_the_past, turn
from machinery.draw import Draw, attention_shapes, block_shapes, model_shapes, no_turn, tiny


def drawn_cache(student, seed, T=7, mixes=False, **changes):
    """An attention, its input with tables, and its output for the whole text at once."""
    cfg, draw = tiny(**changes), Draw(seed)
    part = attention(student, cfg, draw.weights(attention_shapes(cfg)))
    x, tables = draw.normal(2, T, cfg.D), turn(torch.arange(T), cfg.H)
    whole = part(x, *tables)
    if mixes:  # an attention that mixes no tokens needs no cache
        sees_the_past(part, x, tables, whole)
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
    part, given, whole = drawn_cache(student, 141, mixes=True)
    y = in_chunks(part, given, (3, 1, 1, 1, 1)).output
    expect.tensor(y, whole.shape)
    expect.close(y, whole, 1e-3, "token by token the output differs from the whole text's", ONE_BY_ONE)


@pytest.mark.points(2)
@pytest.mark.needs("rope")
def test_cache_chunked_prefill_matches_the_whole(student):
    part, given, whole = drawn_cache(student, 142, mixes=True)
    y = in_chunks(part, given, (3, 2, 2)).output
    expect.tensor(y, whole.shape)
    cause = "With T < S, is the mask aligned so that the T queries are the last T of the S keys?"
    expect.close(y, whole, 1e-3, "in chunks of 3, 2, 2 the output differs from the whole text's", cause)


@pytest.mark.points(1)
@pytest.mark.needs("rope")
def test_cache_stores_K_heads(student):
    part, given, _ = drawn_cache(student, 143, mixes=True)
    (k, v), cause = in_chunks(part, given, (3, 4)).cache[0], "Do you append before repeat_kv?"
    expect.that(k.shape[1] == 2, "the cache does not hold K heads", cause)
    expect.tensor(k, (2, 2, 7, 8), "the cached keys")
    expect.tensor(v, (2, 2, 7, 8), "the cached values")


@pytest.mark.points(1)
@pytest.mark.needs("rope")
def test_cache_stores_turned_keys(student):
    part, (x, cos, sin), _ = drawn_cache(student, 144, mixes=True)
    turned_k, turned_v = in_chunks(part, (x, cos, sin), (7,)).cache[0]
    plain_k, plain_v = in_chunks(part, (x, *no_turn(7, 8)), (7,)).cache[0]
    cause = "Is RoPE applied to the new keys first, and only once, and never to values?"
    expect.differ(turned_k[:, :, 1:], plain_k[:, :, 1:], 0.01, "the cached keys are not turned", cause)
    expect.close(turned_k.norm(dim=-1), plain_k.norm(dim=-1), 1e-3, "cached keys have another length", cause)
    expect.close(turned_v, plain_v, 1e-5, "the cached values depend on positions", cause)


@pytest.mark.points(0)
@pytest.mark.needs("rope")
def test_cache_counts_every_token_once(student):
    part, given, _ = drawn_cache(student, 145, mixes=True)
    got = in_chunks(part, given, (3, 1, 3)).cache_length
    expect.same(got, 7, "after 7 tokens the cache has another length", "Is append called once a forward?")


@pytest.mark.points(1)
@pytest.mark.needs("rope", "window")
def test_cache_works_with_a_window(student):
    part, given, _ = drawn_cache(student, 146, T=9, mixes=True, windows=3)
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
    part, given, whole = drawn_cache(student, 147, mixes=True)
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
    part, given, _ = drawn_cache(student, 152, mixes=True)
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


@pytest.mark.points(0)
@pytest.mark.needs("rope", "softcap")
def test_cache_works_with_a_cap(student):
    student.softcap(torch.ones(1), 2.0)
    part, given, whole = drawn_cache(student, 421, attn_softcap=2.0)
    cause = "Is the cap in force for one new token too?"
    y = in_chunks(part, given, (3, 1, 1, 2)).output
    expect.close(y, whole, 1e-3, "with a cap the cached output differs from the whole text's", cause)


@pytest.mark.points(0)
@pytest.mark.needs("rope", "rmsnorm", "qknorm", "softcap", "window")
def test_cache_works_with_every_option_at_once(student):
    student.softcap(torch.ones(1), 2.0)
    drawn_qknorm(student, 422)
    part, given, whole = drawn_cache(student, 423, T=9, windows=3, qk_norm=True, attn_softcap=2.0)
    cause = "Are QK-norm, cap and window all in force, whatever the number of new tokens?"
    y = in_chunks(part, given, (4, 1, 1, 3), window=3).output
    expect.close(y, whole, 1e-3, "with all options on the cached output differs from the whole text's", cause)


@pytest.mark.points(0)
@pytest.mark.needs("rope")
def test_cache_works_for_any_number_of_heads(student):
    cause = "Does the cache hold K heads, whatever K is?"
    for N, K in ((3, 3), (4, 1)):
        part, given, whole = drawn_cache(student, 424, N=N, K=K)
        outcome = in_chunks(part, given, (3, 1, 3))
        expect.close(outcome.output, whole, 1e-3, f"with N = {N}, K = {K} the cached output differs", cause)
        expect.same(outcome.cache[0][0].shape[1], K, f"with N = {N}, K = {K} the cache holds other heads", cause)


@pytest.mark.points(0)
@pytest.mark.needs("rope")
def test_cache_of_sizes_that_coincide(student):
    part, given, whole = drawn_cache(student, 425, T=4, N=4, K=2, D=16, H=4)  # chunks of K, and S = N = H at the end
    cause = "Is every axis named by its place, and none found by its size?"
    y = in_chunks(part, given, (2, 2)).output
    expect.close(y, whole, 1e-3, "with chunks of T = K and S = N = H the cached output differs", cause)


@pytest.mark.points(0)
@pytest.mark.needs("rope")
def test_cache_has_no_longest_text(student):
    cfg, draw = narrow(), Draw(426)
    part, T = attention(student, cfg, draw.weights(attention_shapes(cfg), std=0.2)), 1_100
    given = (draw.normal(1, T, cfg.D), *no_turn(T, cfg.H))
    y = in_chunks(part, given, (1_060, 38, 1, 1)).output
    cause = "Is there a mask, table or buffer of a fixed length?"
    expect.close(y, part(*given), 1e-3, "after 1,060 tokens the cached output differs from the whole text's", cause)


@pytest.mark.points(0)
@pytest.mark.needs("rope")
def test_cache_keeps_the_dtype_of_the_model(student):
    part, (x, *tables), whole = drawn_cache(student, 427)
    in_chunks(part, (x, *tables), (7,))
    outcome = part.bfloat16().cached(x.bfloat16(), *tables, chunks=(3, 4))
    expect.tensor(outcome.output, x.shape, "the cached output of a bf16 attention", torch.bfloat16)
    cause = "Are keys and values stored in the dtype of x, and masks made in it or as bool?"
    for name, kept in zip(("keys", "values"), outcome.cache[0], strict=True):
        expect.tensor(kept, (2, 2, 7, 8), f"the cached {name} of a bf16 attention", torch.bfloat16)
    off = (outcome.output.float() - whole).norm() / whole.norm()
    expect.close(off, 0.0, 0.2, "the cached bf16 output is far from the fp32 one", cause)


@pytest.mark.points(0)
@pytest.mark.needs("rope")
def test_cache_is_used_in_training_mode_as_in_evaluation(student):
    part, given, whole = drawn_cache(student, 428)
    cause = "Does forward ask self.training? Whether there is a cache is the caller's decision."
    in_chunks(part, given, (7,))
    y = part.cached(*given, chunks=(3, 1, 3), training=True).output
    expect.close(y, whole, 1e-3, "in training mode the cached output differs from the whole text's", cause)


@pytest.mark.points(0)
@pytest.mark.needs("rope")
def test_cache_of_two_prompts_at_once(student):
    part, (x, *tables), whole = drawn_cache(student, 429)
    in_chunks(part, (x, *tables), (7,))
    start, rest = slice(4), slice(4, 7)
    one, two = part.open_cache(), part.open_cache()
    part.feed(one, x[:, start], *(table[start] for table in tables))
    part.feed(two, x.flip(1)[:, start], *(table[start] for table in tables))
    got = part.feed(one, x[:, rest], *(table[rest] for table in tables)).output
    cause = "Does the module keep keys of its own, or on its class? Only the cache that is handed in may."
    expect.close(got, whole[:, rest], 1e-3, "a prompt sees another one that is open at the same time", cause)


@pytest.mark.points(0)
@pytest.mark.needs("rope", "rmsnorm")
def test_cache_serves_a_block(student):
    part, given, _ = drawn_cache(student, 430)
    in_chunks(part, given, (7,))
    draw, cfg = Draw(431), tiny()
    block = student.Block(cfg).load(draw.weights(block_shapes(cfg)))
    whole = block(*given)
    outcome = block.cached(*given, chunks=(3, 1, 3))
    cause = "Does Block.forward take the cache and hand it to the attention?"
    expect.same(outcome.cache_length, 7, "after 7 tokens through a block its cache has another length", cause)
    expect.close(outcome.output, whole, 1e-3, "with a cache the block's output differs", cause)
