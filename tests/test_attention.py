"""Questions to attention.py: sharing heads, the mask, and the attention as a whole.

B batch, T query length, S key length, D width, N query heads, K key/value heads, G = N / K, H head
size. Most tests hand over cos = 1, sin = 0 (position 0 for all), so that RoPE can't be at fault.
"""

import math

import pytest
import torch

from machinery import expect
from machinery.attending import (
    attention,
    drawn_attention,
    follows_long_texts,
    gradients_match_stored,
    picture,
    right_picture,
    same_for_any_number_of_heads,
    sees_the_past,
    turn,
)
from machinery.draw import Draw, attention_shapes, no_turn, tiny
from machinery.kinds import (
    asked_elsewhere,
    leaves_torch_as_it_was,
    objects_do_not_meet,
    on_meta,
    same_in_any_layout,
    same_in_training,
)
from machinery.stored import stored
from nanolm.config import ModelConfig


@pytest.mark.points(0)
def test_attention_repeat_kv_has_a_head_for_every_query_head(student):
    x = Draw(51).normal(2, 3, 5, 4)
    for G in (1, 2, 4):
        expect.tensor(student.repeat_kv(x, G), (2, 3 * G, 5, 4), f"repeat_kv(x, {G})")


@pytest.mark.points(2)
def test_attention_repeat_kv_keeps_neighbours_together(student):
    x = torch.arange(2.0).view(1, 2, 1, 1).expand(1, 2, 5, 4)  # head k holds the number k
    y = student.repeat_kv(x, 3)
    expect.tensor(y, (1, 6, 5, 4))
    cause = "Is it [k0 k0 k0 k1 k1 k1]? repeat makes [k0 k1 k0 k1 ...], repeat_interleave keeps neighbours."
    expect.same(y[0, :, 0, 0].tolist(), [0.0, 0.0, 0.0, 1.0, 1.0, 1.0], "the heads come in the wrong order", cause)
    x = Draw(52).normal(2, 3, 5, 4)
    for n, head in enumerate(student.repeat_kv(x, 2).unbind(dim=1)):
        expect.identical(head, x[:, n // 2], f"head {n} is not a copy of key/value head {n // 2}", cause)


# causal_mask ------------------------------------------------------------------------------------


@pytest.mark.points(2)
def test_attention_mask_hides_the_future(student):
    T = Draw(73).whole(4, 5, 9)
    mask = student.causal_mask(T, T)
    expect.tensor(mask, (T, T), f"causal_mask({T}, {T})", torch.bool)
    cause = "Is True = may attend, for the token itself and all before it?"
    # T = 4: x... / xx.. / xxx. / xxxx
    expect.same(picture(mask), right_picture(T, T), "the mask is wrong (x = may attend)", cause)


@pytest.mark.points(1)
def test_attention_mask_aligns_queries_with_the_last_keys(student):
    draw = Draw(74)
    T = draw.whole(2, 2, 5)
    S = T + draw.whole(3, 2, 7)
    mask = student.causal_mask(T, S)
    expect.tensor(mask, (T, S), f"causal_mask({T}, {S})", torch.bool)
    cause = "Are the T queries the last T of the S tokens?"
    expected = right_picture(T, S)  # T = 2, S = 5: xxxx. / xxxxx
    expect.same(picture(mask), expected, f"{T} queries over {S} keys see the wrong tokens", cause)
    expect.same(picture(student.causal_mask(1, 3)), "xxx", "1 query over 3 keys sees the wrong tokens", cause)


@pytest.mark.points(0)
def test_attention_mask_of_edge_sizes(student):
    cause = "Are the T queries the last T of the S tokens, also where T is 1, S - 1 or S?"
    for T, S in ((1, 1), (1, 2), (1, 7), (2, 3), (4, 5), (3, 3)):
        mask = student.causal_mask(T, S)
        expect.tensor(mask, (T, S), f"causal_mask({T}, {S})", torch.bool)
        symptom = f"{T} queries over {S} keys see the wrong tokens (x = may attend)"
        expect.same(picture(mask), right_picture(T, S), symptom, cause)


@pytest.mark.points(0)
def test_attention_mask_has_no_longest_text(student):
    cause = "Is there a mask of a fixed length that is cut to size?"
    for T, S in ((3, 1_030), (1_030, 1_030)):
        mask = student.causal_mask(T, S)
        expect.tensor(mask, (T, S), f"causal_mask({T}, {S})", torch.bool)
        right = torch.ones(T, S, dtype=torch.bool).tril(S - T)
        expect.that(torch.equal(mask, right), f"{T} queries over {S} keys see the wrong tokens", cause)


@pytest.mark.points(0)
def test_attention_mask_rejects_more_queries_than_keys(student):
    student.causal_mask(2, 2)
    cause = "Are the two checks at the top of the function as they were given?"
    expect.raises("ValueError", lambda: student.causal_mask(3, 2), "3 queries over 2 keys are let through", cause)
    for window in (0, -1):
        symptom = f"a window of {window} is let through"
        expect.raises("ValueError", lambda window=window: student.causal_mask(3, 3, window), symptom, cause)


@pytest.mark.points(0)
def test_attention_mask_lies_on_the_device_asked_for(student):
    expect.stays_on_meta(lambda: student.causal_mask(3, 5, device="meta"), (3, 5))


# GroupedQueryAttention --------------------------------------------------------------------------


@pytest.mark.points(0)
def test_attention_has_the_parameters_of_the_contract(student):
    part = student.GroupedQueryAttention(tiny())
    part(torch.ones(1, 2, 36), *no_turn(2, 8))
    expect.same(
        part.shapes(),
        attention_shapes(tiny()),
        symptom="the attention does not have exactly the four matrices of the contract",
        cause="Is __init__ as it was given: K heads in w_k and w_v, no biases?",
    )


@pytest.mark.points(1)
def test_attention_returns_the_shape_of_its_input(student):
    draw, _, part = drawn_attention(student, 53)
    for B, T in ((2, 5), (1, 5), (2, 1), (1, 1)):
        y = part(draw.normal(B, T, 36), *no_turn(T, 8))
        expect.tensor(y, (B, T, 36), f"the output for B = {B}, T = {T}", torch.float32)


@pytest.mark.points(2)
def test_attention_is_causal(student):
    draw, _, part = drawn_attention(student, 54)
    x = draw.normal(2, 7, 36)
    other = x.clone()
    other[:, 3:] = draw.normal(2, 4, 36, std=30.0)
    y = part(x, *no_turn(7, 8))
    expect.identical(
        part(other, *no_turn(7, 8))[:, :3],
        y[:, :3],
        symptom="changing tokens 3, 4, ... changes the output of tokens 0, 1, 2",
        cause="Is the future masked before the softmax, and are heads split as view(B, T, heads, H).transpose(1, 2)?",
    )
    sees_the_past(part, x, no_turn(7, 8), y)


@pytest.mark.points(1)
def test_attention_first_token_sees_only_itself(student):
    draw, _, part = drawn_attention(student, 55)
    x = draw.normal(2, 5, 36)
    alone = part(x[:, :1], *no_turn(1, 8))
    expect.finite(alone, "the output for one token", "Is a row of the mask empty, so that softmax has nothing left?")
    cause = "Is the mask the right way round (True = may attend, or True = hidden)?"
    y = part(x, *no_turn(5, 8))
    expect.close(y[:, :1], alone, 1e-4, "token 0 is not alone with itself", cause)
    sees_the_past(part, x, no_turn(5, 8), y)


@pytest.mark.points(1)
def test_attention_weights_sum_to_one(student):
    draw, _, part = drawn_attention(student, 56)
    x = draw.normal(2, 1, 36).expand(2, 6, 36)  # one token six times: any average of its values is the same
    y = part(x, *no_turn(6, 8))
    expect.tensor(y, x.shape)
    cause = "Does the mask come before the softmax, and does the softmax run over the keys (the last axis)?"
    expect.close(y, y[:, :1].expand_as(y), 1e-4, "equal tokens do not get equal outputs", cause)
    sees_the_past(part, x, no_turn(6, 8), y)


@pytest.mark.points(1)
def test_attention_scale_uses_head_size(student):
    draw = Draw(97)
    H, scaled = 2 * draw.whole(5, 4, 9), draw.real(2.0, 1.0, 3.0)
    cfg = ModelConfig(L=1, V=7, D=6, N=2, K=1, H=H, ffn_dim=8)
    weights = {name: torch.zeros(shape) for name, shape in attention_shapes(cfg).items()}
    size = (scaled * math.sqrt(H)) ** 0.5  # q . k = 2 sqrt(H) between token 1 and token 0, else 0
    weights["w_q.weight"][0, 1] = size  # tokens are unit vectors: column 1 is token 1
    weights["w_k.weight"][0, 0] = size
    weights["w_v.weight"][3, 0] = 1.0
    weights["w_o.weight"][0, 3] = 1.0
    y = attention(student, cfg, weights)(torch.eye(6)[None, :2], *no_turn(2, H))
    expect.tensor(y, (1, 2, 6))
    cause = "Are scores divided once by sqrt(H), with H = cfg.H (not D, not D / N)?"
    expected = 1 / (1 + math.exp(-scaled))  # 0.8807971
    expect.close(y[0, 1, 0], expected, 1e-3, "the weight at a scaled score of 2 is wrong", cause)


def pick_heads(cfg):
    """w_o (D, N*H) that shows entry 0 of every head n as output n, and nothing else."""
    w_o = torch.zeros(cfg.D, cfg.N * cfg.H)
    w_o[torch.arange(cfg.N), torch.arange(cfg.N) * cfg.H] = 1.0
    return w_o


@pytest.mark.points(2)
def test_attention_query_heads_share_values_in_neighbouring_groups(student):
    cfg, draw = tiny(), Draw(98)  # N = 6, K = 2: heads 0, 1, 2 read value head 0
    values = [draw.real(1.0, 1.0, 4.0), draw.real(2.0, 5.0, 9.0)]
    weights = {name: torch.zeros(shape) for name, shape in attention_shapes(cfg).items()}
    weights["w_v.weight"][[0, cfg.H], 0] = torch.tensor(values)  # entry 0 of value heads 0 and 1
    weights["w_o.weight"] = pick_heads(cfg)
    x = torch.zeros(1, 3, cfg.D)
    x[..., 0] = 1.0
    y = attention(student, cfg, weights)(x, *no_turn(3, 8))
    expect.tensor(y, x.shape)
    cause = "Does query head n read value head n // G, and is row k*H + h of w_v entry h of head k?"
    expected = [value for value in values for _ in range(3)]
    got = [round(value, 3) for value in y[0, -1, :6].tolist()]
    expect.same(got, expected, "the six query heads read the wrong value heads", cause)


@pytest.mark.points(2)
def test_attention_query_heads_share_keys_in_neighbouring_groups(student):
    cfg, draw = tiny(), Draw(99)
    values = [draw.real(10.0, 5.0, 10.0), draw.real(11.0, 11.0, 19.0)]
    weights = {name: torch.zeros(shape) for name, shape in attention_shapes(cfg).items()}
    for n in range(cfg.N):
        weights["w_q.weight"][n * cfg.H, 2] = 20.0  # the last token asks the same in every head
    weights["w_k.weight"][0, 0] = 20.0  # key head 0 shines at token 0
    weights["w_k.weight"][cfg.H, 1] = 20.0  # key head 1 at token 1
    for k in range(cfg.K):
        weights["w_v.weight"][k * cfg.H, :2] = torch.tensor(values)  # the value names the token
    weights["w_o.weight"] = pick_heads(cfg)
    y = attention(student, cfg, weights)(torch.eye(cfg.D)[None, :3], *no_turn(3, 8))
    expect.tensor(y, (1, 3, cfg.D))
    cause = "Do keys go to query heads as values do, head n to n // G, and are weights' rows head after head?"
    got, expected = [round(value, 3) for value in y[0, 2, :6].tolist()], [value for value in values for _ in range(3)]
    expect.same(got, expected, "the six query heads read the wrong key heads", cause)


@pytest.mark.points(1)
@pytest.mark.needs("rope")
def test_attention_turns_queries_and_keys_alike(student):
    draw, _, part = drawn_attention(student, 57)
    x = draw.normal(2, 6, 36)
    here = part(x, *turn(torch.arange(6)))
    cause = "Are both q and k turned by RoPE, the same way, before the scores?"
    for shift in (3, 11):
        there = part(x, *turn(torch.arange(6) + shift))
        expect.close(there, here, 1e-3, f"moving every token by {shift} positions changes the output", cause)
    farther = part(x, *turn(2 * torch.arange(6)))
    expect.differ(farther, here, 0.05, "twice the distances give the same output", "Is apply_rope called on q and k?")


@pytest.mark.points(1)
@pytest.mark.needs("rope")
def test_attention_uses_positions(student):
    draw, _, part = drawn_attention(student, 58)
    x = draw.normal(2, 6, 36)
    turned, still = part(x, *turn(2 * torch.arange(6))), part(x, *no_turn(6, 8))
    cause = "Is apply_rope called on q and k, and its result used?"
    expect.differ(turned, still, 0.05, "the output does not depend on positions", cause)


@pytest.mark.points(1)
@pytest.mark.needs("rope")
def test_attention_leaves_values_alone(student):
    draw, _, part = drawn_attention(student, 59)
    x = draw.normal(2, 1, 36).expand(2, 6, 36)
    y = part(x, *turn(torch.arange(6)))
    expect.tensor(y, x.shape)
    cause = "Is V turned too? RoPE belongs to q and k only: values carry content, not place."
    expect.close(y, y[:, :1].expand_as(y), 1e-4, "equal tokens get other values at other positions", cause)
    sees_the_past(part, x, turn(torch.arange(6)), y)


@pytest.mark.points(0)
def test_attention_rows_do_not_meet(student):
    draw, _, part = drawn_attention(student, 60)
    x = draw.normal(3, 5, 36)
    together = part(x, *no_turn(5, 8))
    cause = "Does an operation mix the batch with another axis?"
    for row in range(3):
        alone = part(x[row : row + 1], *no_turn(5, 8))
        expect.close(together[row : row + 1], alone, 1e-4, f"sequence {row} depends on its neighbours", cause)


@pytest.mark.points(0)
@pytest.mark.needs("rope")
def test_attention_accepts_tables_by_row(student):
    draw, _, part = drawn_attention(student, 61)
    x, positions = draw.normal(2, 5, 36), torch.stack((torch.arange(5), 3 * torch.arange(5)))
    cos, sin = turn(positions)
    together = part(x, cos.unsqueeze(1), sin.unsqueeze(1))  # (B, 1, T, H/2)
    cause = "Are cos and sin handed on to apply_rope as they come?"
    for row in (0, 1):
        alone = part(x[row : row + 1], *turn(positions[row]))
        expect.close(together[row : row + 1], alone, 1e-4, f"row {row} is not turned by its own positions", cause)


@pytest.mark.points(0)
def test_attention_second_call_may_have_another_length(student):
    draw, _, part = drawn_attention(student, 62)
    x = draw.normal(2, 9, 36)
    cause = "Is a mask or table kept from the first call?"
    whole = None
    for T in (9, 4, 7):
        y = part(x[:, :T], *no_turn(T, 8))
        expect.tensor(y, (2, T, 36))
        whole = y if whole is None else whole
        expect.close(y, whole[:, :T], 1e-4, f"after a call with T = 9, T = {T} gives other values", cause)


@pytest.mark.points(1)
def test_attention_survives_large_scores(student):
    draw = Draw(63)
    weights = draw.weights(attention_shapes(tiny()), std=4.0)
    y = attention(student, tiny(), weights)(draw.normal(2, 6, 36), *no_turn(6, 8))
    cause = "Does your softmax subtract each row's maximum first? torch's own does."
    expect.finite(y, "the output for large scores", cause)
    expect.differ(y, 0.0, 0.1, "nothing comes out for large scores", cause)


@pytest.mark.points(1)
def test_attention_every_weight_gets_a_gradient(student):
    draw, weights, part = drawn_attention(student, 64)
    outcome = part.run(draw.normal(2, 5, 36), *no_turn(5, 8), upstream=draw.normal(2, 5, 36))
    for name in weights:
        grad = outcome.grads.get(name)
        cause = f"Is self.{name.split('.')[0]} used, without detach or .data?"
        expect.that(grad is not None and bool(grad.abs().sum() > 0), f"no gradient reaches {name}", cause)
    expect.finite(outcome.grad, "the gradient of x", "Does a masked row or an operation in place break the way back?")


@pytest.mark.points(0)
def test_attention_trains_two_steps(student):
    draw, weights, part = drawn_attention(student, 65)
    x, upstream = draw.normal(2, 5, 36), draw.normal(2, 5, 36)
    first, second = (part.step(x, *no_turn(5, 8), upstream=upstream, rate=0.01).output for _ in range(2))
    expect.tensor(second, x.shape)
    expect.differ(first, second, 1e-4, "a training step changes nothing", "Are the weights used that are trained?")
    trained = {name: tensor for name, tensor in part.state().items() if name in weights}
    expected = attention(student, tiny(), trained)(x, *no_turn(5, 8))
    cause = "Is something kept from an earlier call that was made from the weights of that time?"
    expect.close(part(x, *no_turn(5, 8)), expected, 1e-4, "after training the trained weights are not all used", cause)


@pytest.mark.points(0)
def test_attention_is_the_same_twice(student):
    draw, _, part = drawn_attention(student, 66)
    x = draw.normal(2, 6, 36)
    cause = "Is there dropout that also runs in evaluation, or a state that a call leaves behind?"
    expect.identical(part(x, *no_turn(6, 8)), part(x, *no_turn(6, 8)), "the same call gives two answers", cause)


@pytest.mark.points(0)
def test_attention_does_not_modify_its_inputs(student):
    draw, _, part = drawn_attention(student, 67)
    given = (draw.normal(2, 5, 36), *no_turn(5, 8))
    for got, before in zip(part.run(*given).inputs, given, strict=True):
        expect.identical(got, before, "the caller's tensor was changed", "Is there an operation in place?")


@pytest.mark.points(1)
def test_attention_runs_in_bf16(student):
    draw, _, part = drawn_attention(student, 68)
    x, tables = draw.normal(2, 5, 36), no_turn(5, 8)
    fine = part(x, *tables)
    coarse = part.bfloat16()(x.bfloat16(), *tables)
    expect.tensor(coarse, x.shape, "the output of a bf16 attention", torch.bfloat16)
    cause = "Do q, k and v have one dtype where they meet (RoPE gives x's dtype back)?"
    off = (coarse.float() - fine).norm() / fine.norm()
    expect.close(off, 0.0, 0.2, "the bf16 output is far from the fp32 one", cause)


@pytest.mark.points(0)
def test_attention_runs_in_fp64(student):
    draw, _, part = drawn_attention(student, 69)
    x, tables = draw.normal(2, 5, 36), no_turn(5, 8)
    fine = part(x, *tables)
    finer = part.double()(x.double(), *tables)
    expect.tensor(finer, x.shape, "the output of a fp64 attention", torch.float64)
    cause = "Does every tensor that you make inside take x's dtype?"
    expect.close(finer, fine, 1e-3, "the fp64 output is far from the fp32 one", cause)


@pytest.mark.points(0)
def test_attention_follows_its_device(student):
    _, _, part = drawn_attention(student, 70)
    part.to_meta()
    table = torch.empty(5, 4, device="meta")
    expect.stays_on_meta(lambda: part(torch.empty(2, 5, 36, device="meta"), table, table), (2, 5, 36))


@pytest.mark.points(0)
def test_attention_works_as_a_copy(student):
    draw, _, part = drawn_attention(student, 71)
    x = draw.normal(2, 5, 36)
    cause = "Does the module keep something that belongs to the first object?"
    expect.close(part.copy()(x, *no_turn(5, 8)), part(x, *no_turn(5, 8)), 1e-6, "a deep copy differs", cause)


@pytest.mark.points(1)
def test_attention_is_the_same_in_training(student):
    draw, _, part = drawn_attention(student, 331)
    x = draw.normal(2, 6, 36)
    still, _ = same_in_training(part, (x, *turn(torch.arange(6))), draw.normal(2, 6, 36))
    sees_the_past(part, x, turn(torch.arange(6)), still)


@pytest.mark.points(0)
@pytest.mark.needs("rope")
def test_attention_gradients_match_stored_answers(student):
    gradients_match_stored(student, "attention", "gqa", tiny())


@pytest.mark.points(0)
def test_attention_shares_heads_for_any_number_of_them(student):
    same_for_any_number_of_heads(student, 332, tiny())


@pytest.mark.points(0)
def test_attention_accepts_edge_sizes(student):
    cause = "Does a squeeze drop an axis of one, or does an axis get its size from a division?"
    for D, N, K, H in ((1, 1, 1, 2), (3, 4, 4, 2), (36, 6, 1, 2)):
        cfg = ModelConfig(L=1, V=7, D=D, N=N, K=K, H=H, ffn_dim=8)
        draw, weights, part = drawn_attention(student, 333, cfg)
        x = draw.normal(2, 3, D)
        y = part(x, *no_turn(3, H))
        expect.tensor(y, x.shape, f"the output for D = {D}, N = {N}, K = {K}, H = {H}")
        w_v = weights["w_v.weight"].view(K, H, D).repeat_interleave(N // K, dim=0).reshape(N * H, D)
        first = x[:, 0] @ w_v.T @ weights["w_o.weight"].T  # token 0 sees nobody else
        expect.close(y[:, 0], first, 1e-3, f"token 0 for D = {D}, N = {N}, K = {K}, H = {H} is wrong", cause)


@pytest.mark.points(1)
def test_attention_has_no_longest_text(student):
    follows_long_texts(student, 335)


@pytest.mark.points(0)
def test_attention_tells_axes_of_equal_size_apart(student):
    cause = "Is every axis named by its place, and none found by its size?"
    for change in (
        {"N": 4, "K": 4, "D": 16, "H": 4},
        {"N": 8, "K": 4, "D": 32, "H": 4},
        {"N": 4, "K": 2, "D": 4, "H": 4},
    ):
        draw, _, part = drawn_attention(student, 336, tiny(**change))  # B = N = T, N*H = D; K = T = H; D = N = H = T
        x, tables = draw.normal(4, 5, change["D"]), turn(torch.arange(5), H=4)
        fewer = part(x[:3], *tables)  # B = 3, T = 5: no two sizes that could be confused
        got = part(x[:, :4], *(table[:4] for table in tables))
        symptom = (
            f"with B = T = 4 and {', '.join(f'{name} = {size}' for name, size in change.items())} the values are others"
        )
        expect.close(got[:3], fewer[:, :4], 1e-4, symptom, cause)


@pytest.mark.points(0)
def test_attention_takes_tables_of_another_dtype(student):
    draw, _, part = drawn_attention(student, 337)
    x, tables = draw.normal(2, 5, 36), turn(torch.arange(5))
    exact = part(x, *tables)
    cause = "Does apply_rope give x's dtype back, and is nothing cast to that of the tables?"
    y = part(x, *(table.double() for table in tables))
    expect.tensor(y, x.shape, "the output of a fp32 attention with fp64 tables", torch.float32)
    expect.close(y, exact, 1e-3, "with fp64 tables the values are others", cause)
    y = part.bfloat16()(x.bfloat16(), *tables)
    expect.tensor(y, x.shape, "the output of a bf16 attention with fp32 tables", torch.bfloat16)
    expect.close((y.float() - exact).norm() / exact.norm(), 0.0, 0.2, "in bf16 the values are others", cause)


@pytest.mark.points(0)
def test_attention_accepts_strided_input(student):
    draw, _, part = drawn_attention(student, 338)
    x = draw.normal(1, 5, 36).repeat(3, 1, 1)
    same_in_any_layout(part, x, *no_turn(5, 8), layouts=("transposed", "expanded"), within=1e-4)


@pytest.mark.points(0)
@pytest.mark.needs("rope")
def test_attention_objects_do_not_meet(student):
    answer, cfg = stored("attention"), tiny(N=4, K=1)
    weights = {key: answer[f"mqa.{key}"] for key in attention_shapes(cfg)}
    draw = Draw(339)
    first = {"D": 10, "N": 2, "K": 2, "H": 4, "ffn_dim": 8}
    objects_do_not_meet(
        lambda: attention(student, tiny(**first), draw.weights(attention_shapes(tiny(**first)))),
        (draw.normal(1, 3, 10), *turn(torch.arange(3), H=4)),
        lambda: attention(student, cfg, weights)(*(answer[f"mqa.{key}"] for key in ("x", "cos", "sin"))),
        answer["mqa.y"],
    )


@pytest.mark.points(0)
def test_attention_keeps_nothing_of_another_dtype_or_device(student):
    draw, weights, part = drawn_attention(student, 340)
    x, tables = draw.normal(2, 11, 36), no_turn(11, 8)  # of a length that no other test asks for
    twin, coarse = part.copy(), part.copy()
    asked_elsewhere(
        lambda: twin.to_meta()(on_meta(2, 11, 36), on_meta(11, 4), on_meta(11, 4)),
        lambda: coarse.bfloat16()(x.bfloat16(), *tables),
    )
    cause = "Is a mask or table kept in the module's file or on the class, under a key without dtype and device?"
    y = attention(student, tiny(), weights)(x, *tables)
    expect.tensor(y, x.shape)
    expect.same(y.device.type, "cpu", "after a call on another device the result lies there", cause)
    fresh = part(x[:, :10], *(table[:10] for table in tables))
    expect.close(y[:, :10], fresh, 1e-4, "after a call in another dtype or device the values are others", cause)


@pytest.mark.points(0)
def test_attention_of_equal_scores_is_the_mean(student):
    draw = Draw(341)
    weights = draw.weights(attention_shapes(tiny())) | {"w_q.weight": torch.zeros(48, 36)}
    part, x = attention(student, tiny(), weights), draw.normal(1, 6, 36)
    alone = part(x.transpose(0, 1), *no_turn(1, 8)).transpose(0, 1)  # six texts of one token
    expect.tensor(alone, x.shape)
    mean = alone.cumsum(dim=1) / torch.arange(1.0, 7.0)[:, None]
    cause = "With equal scores each of t + 1 tokens has the weight 1 / (t + 1). Is one left out, or counted twice?"
    expect.close(
        part(x, *no_turn(6, 8)), mean, 1e-4, "with equal scores the output is not the mean of the values", cause
    )


@pytest.mark.points(0)
def test_attention_leaves_torch_as_it_was(student):
    draw, _, part = drawn_attention(student, 342)
    part.run(draw.normal(2, 3, 36), *no_turn(3, 8), upstream=draw.normal(2, 3, 36), training=True)
    leaves_torch_as_it_was(student, "attention")


@pytest.mark.points(0)
def test_attention_is_your_own(student):
    drawn_attention(student, 72)[2](torch.ones(1, 2, 36), *no_turn(2, 8))
    ready_made = {"MultiheadAttention", "multi_head_attention_forward", "TransformerEncoderLayer"}
    cause = "Can you write it from the four projections? scaled_dot_product_attention is welcome."
    expect.avoids(student.taken_from_torch("attention", ready_made), cause)


@pytest.mark.points(2)
@pytest.mark.needs("rope")
def test_attention_matches_stored_answers(student):
    answer = stored("attention")
    for name, heads in {"gqa": (6, 2), "mha": (4, 4), "mqa": (4, 1)}.items():
        cfg = tiny(N=heads[0], K=heads[1])
        weights = {key: answer[f"{name}.{key}"] for key in attention_shapes(cfg)}
        y = attention(student, cfg, weights)(*(answer[f"{name}.{key}"] for key in ("x", "cos", "sin")))
        cause = "Which of the tests above is red? All green: is w_o applied last, heads joined in their order?"
        symptom = f"the attention with N = {cfg.N}, K = {cfg.K} differs from the stored answer"
        expect.close(y, answer[f"{name}.y"], 1e-3, symptom, cause)
