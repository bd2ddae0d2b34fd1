"""Questions to model.py: does each branch read a normed copy and add to the raw stream?

B batch, T query length, D width. Zero output projections make a branch silent, so that each
branch can be asked alone.
"""

import pytest
import torch

from machinery import expect
from machinery.draw import Draw, block_shapes, no_turn, tiny
from machinery.kinds import (
    leaves_torch_as_it_was,
    objects_do_not_meet,
    same_in_any_layout,
    same_in_training,
)
from machinery.stored import stored


def drawn_block(student, seed, silent=(), cfg=None):
    """A block with random weights; `silent` names matrices that are zero."""
    cfg = cfg or tiny(norm_eps=1e-6)
    draw = Draw(seed)
    weights = draw.weights(block_shapes(cfg))
    for name in silent:
        weights[name] = torch.zeros_like(weights[name])
    return draw, weights, student.Block(cfg).load(weights)


ATTENTION_SILENT, FFN_SILENT = "attn.w_o.weight", "ffn.w_down.weight"


@pytest.mark.points(0)
def test_block_has_the_parameters_of_the_contract(student):
    block = student.Block(tiny())
    block(torch.ones(1, 2, 36), *no_turn(2, 8))
    expect.same(
        block.shapes(),
        block_shapes(tiny()),
        symptom="the block's parameters are not those of the contract",
        cause="Is __init__ as it was given: attn_norm, attn, ffn_norm, ffn, no biases?",
    )


@pytest.mark.points(1)
def test_block_returns_the_shape_of_its_input(student):
    draw, _, block = drawn_block(student, 81)
    for B, T in ((2, 5), (1, 1)):
        expect.tensor(block(draw.normal(B, T, 36), *no_turn(T, 8)), (B, T, 36), f"the output for B = {B}, T = {T}")


@pytest.mark.points(2)
def test_block_is_identity_when_both_branches_are_silent(student):
    draw, _, block = drawn_block(student, 82, (ATTENTION_SILENT, FFN_SILENT))
    x, upstream = draw.normal(2, 5, 36, std=3.0), draw.normal(2, 5, 36)
    outcome = block.run(x, *no_turn(5, 8), upstream=upstream)
    cause = "Is it x + branch(norm(x)), twice, with the raw x on the left of the plus?"
    expect.close(outcome.output, x, 1e-5, "with silent branches x does not come out as it went in", cause)
    expect.that(outcome.grad is not None, "with silent branches no gradient reaches x", cause)
    expect.close(outcome.grad, upstream, 1e-4, "with silent branches the gradient is not passed on as it is", cause)


@pytest.mark.points(1)
def test_block_keeps_attention_output_in_the_stream(student):
    draw, _, block = drawn_block(student, 83, (FFN_SILENT,))
    x = draw.normal(2, 5, 36)
    cause = "Does the second sum start from the result of the first (and not from the block's input)?"
    y = block(x, *no_turn(5, 8))
    expect.differ(y, x, 0.1, "the attention leaves nothing in the stream", cause)
    added = y - x
    expect.differ(added[:, 0], added[:, 1], 0.05, "the attention leaves the same for every token", cause)
    along_x = (added * x).sum(dim=-1, keepdim=True) / x.pow(2).sum(dim=-1, keepdim=True) * x
    expect.differ(added, along_x, 0.05, "the attention leaves nothing but a multiple of the stream", cause)


@pytest.mark.points(1)
def test_block_ffn_reads_the_stream_after_attention(student):
    draw, weights, block = drawn_block(student, 84)
    x = draw.normal(2, 5, 36)
    middle = drawn_block(student, 84, (FFN_SILENT,))[2](x, *no_turn(5, 8))
    expected = drawn_block(student, 84, (ATTENTION_SILENT,))[2](middle, *no_turn(5, 8))
    cause = "Does the FFN read what the attention has added to, not the block's input?"
    y = block(x, *no_turn(5, 8))
    expect.close(y, expected, 1e-3, "the two branches are not one after the other", cause)
    expect.differ(y, middle, 0.05, "the FFN leaves nothing in the stream", cause)


@pytest.mark.points(1)
def test_block_branches_read_a_normed_copy(student):
    cause = "Does the branch get norm(x), so that ten times the stream gives the same addition?"
    for name, silent in (("attention", FFN_SILENT), ("FFN", ATTENTION_SILENT)):
        draw, _, block = drawn_block(student, 85, (silent,))
        x = draw.normal(2, 5, 36)
        small = block(x, *no_turn(5, 8)) - x
        large = block(10 * x, *no_turn(5, 8)) - 10 * x
        expect.close(large, small, 1e-3, f"what the {name} adds depends on the size of the stream", cause)
        expect.differ(block(-x, *no_turn(5, 8)) + x, small, 0.1, f"what the {name} adds is always the same", cause)


@pytest.mark.points(1)
def test_block_uses_each_norm_for_its_branch(student):
    cause = "Does attn_norm stand before attn, and ffn_norm before ffn?"
    for own, other, silent in (("attn_norm", "ffn_norm", FFN_SILENT), ("ffn_norm", "attn_norm", ATTENTION_SILENT)):
        draw, weights, block = drawn_block(student, 86, (silent,))
        x = draw.normal(2, 5, 36)
        before = block(x, *no_turn(5, 8))
        block.load({f"{other}.weight": draw.gain(36) + 2})
        expect.close(block(x, *no_turn(5, 8)), before, 1e-5, f"{other} reaches the other branch", cause)
        block.load({f"{own}.weight": draw.gain(36) + 2})
        expect.differ(block(x, *no_turn(5, 8)), before, 0.05, f"{own} has no effect on its branch", cause)


@pytest.mark.points(0)
def test_block_uses_configured_eps(student):
    x = Draw(87).normal(2, 5, 36, std=0.05)
    for norm, silent in (("attn_norm", FFN_SILENT), ("ffn_norm", ATTENTION_SILENT)):
        blocks = [drawn_block(student, 88, (silent,), tiny(norm_eps=eps))[2] for eps in (1e-6, 1.0)]
        fine, coarse = (block(x, *no_turn(5, 8)) for block in blocks)
        cause = "Are both norms built with cfg.norm_eps, as __init__ was given?"
        expect.differ(fine, coarse, 0.1, f"cfg.norm_eps has no effect on {norm}", cause)


@pytest.mark.points(1)
@pytest.mark.needs("rope")
def test_block_passes_positions_on(student):
    draw, _, block = drawn_block(student, 89)
    x, angles = draw.normal(2, 5, 36), torch.arange(5.0)[:, None] * torch.tensor([1.0, 0.7, 0.4, 0.2])
    turned, still = block(x, angles.cos(), angles.sin()), block(x, *no_turn(5, 8))
    cause = "Are cos and sin handed to the attention, in this order?"
    expect.differ(turned, still, 0.01, "the block's output does not depend on cos and sin", cause)


@pytest.mark.points(0)
def test_block_every_weight_gets_a_gradient(student):
    draw, weights, block = drawn_block(student, 90)
    outcome = block.run(draw.normal(2, 5, 36), *no_turn(5, 8), upstream=draw.normal(2, 5, 36))
    for name in weights:
        grad = outcome.grads.get(name)
        cause = f"Is self.{name.split('.')[0]} used, once?"
        expect.that(grad is not None and bool(grad.abs().sum() > 0), f"no gradient reaches {name}", cause)


@pytest.mark.points(0)
def test_block_trains_two_steps(student):
    draw, _, block = drawn_block(student, 91)
    x, upstream = draw.normal(2, 5, 36), draw.normal(2, 5, 36)
    first, second = (block.step(x, *no_turn(5, 8), upstream=upstream, rate=0.001).output for _ in range(2))
    expect.differ(first, second, 1e-4, "a training step changes nothing", "Are the weights used that are trained?")


@pytest.mark.points(0)
def test_block_does_not_modify_its_input(student):
    draw, _, block = drawn_block(student, 92)
    x = draw.normal(2, 5, 36)
    cause = "Is there a += on the stream? Write x = x + ... instead."
    expect.identical(block.run(x, *no_turn(5, 8)).inputs[0], x, "the caller's tensor was changed", cause)


@pytest.mark.points(0)
def test_block_runs_in_bf16(student):
    draw, _, block = drawn_block(student, 93)
    x = draw.normal(2, 5, 36)
    fine = block(x, *no_turn(5, 8))
    coarse = block.bfloat16()(x.bfloat16(), *no_turn(5, 8))
    expect.tensor(coarse, x.shape, "the output of a bf16 block", torch.bfloat16)
    cause = "Do all parts give their input's dtype back?"
    off = (coarse.float() - fine).norm() / fine.norm()
    expect.close(off, 0.0, 0.2, "the bf16 output is far from the fp32 one", cause)


@pytest.mark.points(0)
def test_block_follows_its_device(student):
    _, _, block = drawn_block(student, 94)
    block.to_meta()
    table = torch.empty(5, 4, device="meta")
    expect.stays_on_meta(lambda: block(torch.empty(2, 5, 36, device="meta"), table, table), (2, 5, 36))


@pytest.mark.points(1)
def test_block_is_the_same_in_training(student):
    draw, _, block = drawn_block(student, 351)
    x = draw.normal(2, 5, 36)
    still, _ = same_in_training(block, (x, *no_turn(5, 8)), draw.normal(2, 5, 36))
    expect.differ(still, x, 0.1, "the branches leave nothing in the stream", "Is each branch added to the stream?")


@pytest.mark.points(0)
@pytest.mark.needs("rope")
def test_block_gradients_match_stored_answers(student):
    answer, names = stored("block"), block_shapes(tiny())
    block = student.Block(tiny()).load({name: answer[name] for name in names})
    outcome = block.run(*(answer[name] for name in ("x", "cos", "sin")), upstream=answer["upstream"], training=True)
    expect.gradients(outcome, {name: answer[f"grad.{name}"] for name in ("x", *names)}, 1e-2)


@pytest.mark.points(0)
@pytest.mark.needs("window")
def test_block_hands_its_layer_to_the_attention(student):
    draw, _, block = drawn_block(student, 352)
    x, tables = draw.normal(2, 5, 36), no_turn(5, 8)
    other = drawn_block(student, 352, cfg=tiny(norm_eps=1e-6, windows=(9, 1)))[2]  # 9 tokens are the whole text
    cause = "Are the configuration and the layer handed to the attention as they are, and used nowhere else?"
    symptom = "a window of the whole text changes the output"
    expect.close(other(x, *tables), block(x, *tables), 1e-3, symptom, cause)


@pytest.mark.points(0)
def test_block_takes_a_cache_argument(student):
    draw, _, block = drawn_block(student, 353)
    x, tables = draw.normal(2, 5, 36), no_turn(5, 8)
    cause = "Is forward's signature as it was given: x, cos, sin, cache=None?"
    expect.close(block(x, *tables, None), block(x, *tables), 1e-6, "a cache of None changes the output", cause)


@pytest.mark.points(0)
def test_block_accepts_one_token(student):
    draw, _, block = drawn_block(student, 354)
    x = draw.normal(3, 1, 36)
    y, cause = block(x, *no_turn(1, 8)), "Does a squeeze drop an axis of one?"
    longer = block(torch.cat((x, x), dim=1), *no_turn(2, 8))
    expect.close(y, longer[:, :1], 1e-4, "one token alone is not the first token of two", cause)


@pytest.mark.points(0)
def test_block_has_no_longest_text(student):
    cfg = tiny(D=6, N=2, K=1, H=4, ffn_dim=8, T_max=2048)
    draw, _, block = drawn_block(student, 355, cfg=cfg)
    x = draw.normal(1, 1_030, 6)
    y, shorter = block(x, *no_turn(1_030, 4)), block(x[:, :1_027], *no_turn(1_027, 4))
    expect.tensor(y, x.shape, "the output for T = 1,030")
    cause = "Is there a mask, table or loop of a fixed length?"
    expect.close(y[:, :1_027], shorter, 1e-3, "in a text of 1,030 tokens the first 1,027 come out otherwise", cause)


@pytest.mark.points(0)
def test_block_tells_axes_of_equal_size_apart(student):
    draw, _, block = drawn_block(student, 356, cfg=tiny(D=8, N=4, K=4, H=2, ffn_dim=8, norm_eps=1e-6))
    x = draw.normal(8, 9, 8)
    got, fewer = block(x[:, :8], *no_turn(8, 2)), block(x[:3], *no_turn(9, 2))
    cause = "Is every axis named by its place, and none found by its size?"
    expect.close(got[:3], fewer[:, :8], 1e-3, "with B = T = D = F = N*H the values are others", cause)


@pytest.mark.points(0)
def test_block_accepts_strided_input(student):
    draw, _, block = drawn_block(student, 357)
    x = draw.normal(1, 5, 36).repeat(3, 1, 1)
    same_in_any_layout(block, x, *no_turn(5, 8), layouts=("transposed", "expanded"), within=1e-3)


@pytest.mark.points(0)
@pytest.mark.needs("rope")
def test_block_objects_do_not_meet(student):
    answer, draw = stored("block"), Draw(358)
    small = tiny(D=10, N=2, K=2, H=4, ffn_dim=6)
    objects_do_not_meet(
        lambda: student.Block(small).load(draw.weights(block_shapes(small))),
        (draw.normal(1, 3, 10), *no_turn(3, 4)),
        lambda: student.Block(tiny()).load({name: answer[name] for name in block_shapes(tiny())})(
            answer["x"], answer["cos"], answer["sin"]
        ),
        answer["y"],
    )


@pytest.mark.points(0)
def test_block_runs_in_fp64(student):
    draw, _, block = drawn_block(student, 360)
    x = draw.normal(2, 5, 36)
    fine = block(x, *no_turn(5, 8))
    finer = block.double()(x.double(), *(table.double() for table in no_turn(5, 8)))
    expect.tensor(finer, x.shape, "the output of a fp64 block", torch.float64)
    cause = "Does every tensor that you make inside take x's dtype?"
    expect.close(finer, fine, 1e-3, "the fp64 output is far from the fp32 one", cause)


@pytest.mark.points(0)
def test_block_leaves_a_large_stream_as_large(student):
    draw, _, block = drawn_block(student, 361)
    x, tables = draw.normal(2, 5, 36), no_turn(5, 8)
    added = block(1e4 * x, *tables) - 1e4 * x
    cause = "Is the stream itself left alone: no clamp, no norm and no cast on it?"
    small = block(x, *tables) - x  # the attention adds little to a large stream, so each FFN reads another direction
    expect.that(bool(added.abs().max() < 100 * small.abs().max()), "on a large stream the block adds more", cause)
    expect.differ(added, 0.0, 0.1, "to a large stream the block adds nothing", cause)


@pytest.mark.points(0)
def test_block_leaves_torch_as_it_was(student):
    draw, _, block = drawn_block(student, 362)
    block.run(draw.normal(2, 3, 36), *no_turn(3, 8), upstream=draw.normal(2, 3, 36), training=True)
    leaves_torch_as_it_was(student, "model")


@pytest.mark.points(1)
@pytest.mark.needs("rope")
def test_block_matches_stored_answers(student):
    answer = stored("block")
    block = student.Block(tiny()).load({name: answer[name] for name in block_shapes(tiny())})
    y = block(answer["x"], answer["cos"], answer["sin"])
    cause = "Which of the tests above is red? All parts green: does each appear once, in the order of the drawing?"
    expect.close(y, answer["y"], 1e-3, "the block's output differs from the stored answer", cause)
