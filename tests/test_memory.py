"""Right, and for the right reason? What your code keeps, copies and repeats, asked without a clock.

The answers are advice: slow code that is right has all its points. Torch itself counts the
operations and the bytes that are alive (nanolm/asking/counting.py), so a busy machine changes nothing.
B batch, T query length, L layers, D width, N query heads, K key/value heads. How many heads the
cache holds is asked in test_cache.py (test_cache_stores_K_heads).
"""

import pytest
import torch

from machinery import expect
from machinery.draw import Draw, attention_shapes, block_shapes, model_shapes, no_turn, tiny
from nanolm.errors import StudentError

ROWS = 4  # of the batch, where bytes are asked for
LOOP = "Is there a Python loop? One operation over the whole axis does its work at once."


def block_of(student, **heads):
    cfg = tiny(**heads)
    return student.Block(cfg).load(Draw(171).weights(block_shapes(cfg)))


def operations(block, B=2, T=6):
    """How many torch operations a block of tiny sizes takes for x (B, T, D)."""
    return block.counted(Draw(170).normal(B, T, 36), *no_turn(T, 8))["operations"]


def stays_flat(few, many, added, axis):
    """`added` more entries along the axis make fewer than half as many more operations."""
    symptom = f"the block takes more torch operations, the more {axis} there are"
    expect.that(many - few < added / 2, symptom, LOOP, f"{few} operations for any number", f"{many}")


def test_memory_block_loops_over_no_batch(student):
    block = block_of(student)
    stays_flat(operations(block), operations(block, B=12), 10, "rows of the batch")


def test_memory_block_loops_over_no_positions(student):
    block = block_of(student)
    stays_flat(operations(block), operations(block, T=26), 20, "tokens")


def test_memory_block_loops_over_no_heads(student):
    few = operations(block_of(student, N=4, K=2))
    stays_flat(few, operations(block_of(student, N=16, K=2)), 12, "query heads")
    stays_flat(few, operations(block_of(student, N=16, K=8)), 6, "key/value heads")


def bytes_a_pair(attention, draw):
    """What grows with T * T in the bytes alive at once: the second difference over T leaves nothing else."""
    step = 32
    one, two, three = (
        attention.counted(draw.normal(ROWS, T, 36), *no_turn(T, 8), training=True)["bytes"]
        for T in (step, 2 * step, 3 * step)
    )
    return (three - 2 * two + one) / (2 * step**2)


def test_memory_attention_keeps_no_scores(student):
    cfg, draw = tiny(N=8), Draw(172)
    attention = student.GroupedQueryAttention(cfg).load(draw.weights(attention_shapes(cfg)))
    scores = ROWS * cfg.N * 4  # bytes: fp32, for each row and head. A mask that all share stays far below
    got = bytes_a_pair(attention, draw)
    expect.that(
        got < scores / 2,
        symptom="the attention keeps the scores, T x T numbers for each row and head",
        cause="Does scaled_dot_product_attention do the softmax, with q of (B, N, T, H)? It never holds them all.",
        expected="in a forward and backward no bytes for each pair of tokens, or some for a mask",
        got=f"{got:.0f} bytes for each pair",
    )


def drawn_model(student, seed, **changes):
    cfg, draw = tiny(**changes), Draw(seed)
    return student.LanguageModel(cfg).load(draw.weights(model_shapes(cfg))), draw.tokens(2, 7, V=cfg.V)


@pytest.mark.needs("rope")
def test_memory_tables_are_built_once_a_forward(student):
    models = [drawn_model(student, 173, L=L) for L in (1, 2)]
    one, two = (model.counted(tokens)["trigonometry"] for model, tokens in models)
    expect.that(
        one == two,
        symptom="every layer makes tables of cosines and sines anew",
        cause="Do the attention and apply_rope use the cos and sin that they are given, as they are?",
        expected=f"{one} such operations for 1 layer and for 2",
        got=f"{two} for 2 layers",
    )


def test_memory_weights_stay_in_their_dtype(student):
    draw = Draw(174)
    block = student.Block(tiny()).load(draw.weights(block_shapes(tiny()))).bfloat16()
    got = block.counted(draw.normal(1, 3, 36).bfloat16(), *no_turn(3, 8))["widened"]
    cause = "Is it x that needs fp32, in norm and softmax? A matrix in fp32 is twice its bytes, at every forward."
    symptom = "a forward of a bf16 block copies weight matrices into a wider dtype"
    expect.that(got == 0, symptom, cause, "no entries", f"{got} entries")


def test_memory_norm_keeps_fp64(student):
    x = Draw(177).normal(4, 16).double()
    y = student.RMSNorm(16, eps=1e-30).load({"weight": torch.ones(16)}).double()(x)
    cause = "Is the input cast to at least fp32 (torch.promote_types), and left alone where it is finer?"
    symptom = "a fp64 norm passes through fp32: right, as in Llama's own code, and digits are lost"
    expect.close(y, x / x.norm(dim=-1, keepdim=True) * 4, 1e-11, symptom, cause)


@pytest.mark.needs("rope")
def test_memory_forward_waits_for_no_value(student):
    model, tokens = drawn_model(student, 175, L=1)
    got = model.counted(tokens)["waits"]
    cause = "Is there an item(), a tolist(), an if or a loop on a tensor's value, or a mask as an index?"
    symptom = "a forward reads values back into Python: a GPU stands still until they are there"
    expect.that(got == 0, symptom, cause, "no such operation", got)


@pytest.mark.needs("rope")
def test_memory_forward_stays_on_its_device(student):
    model, tokens = drawn_model(student, 176, L=1)
    counts = model.counted(tokens)
    try:
        on_meta = model.to_meta().counted(tokens.to("meta"))["copies"]  # meta stands in for a GPU
    except StudentError as error:
        on_meta = "no data on the meta device" in error.message
    copies = counts["copies"] + (0 if counts["waits"] else on_meta)  # a value that is read is asked about elsewhere
    cause = "Is something made on the CPU and moved? Make it where it is needed: device=x.device."
    expect.that(copies == 0, "a forward copies tensors to another device", cause, "no copy", f"{copies} copies")


@pytest.mark.needs("rope")
def test_memory_forward_leaves_nothing_behind(student):
    model, tokens = drawn_model(student, 178, L=1)
    got = model.counted(tokens)["kept"]
    cause = "Is a list added to at every call, or a result kept under a key that never comes again, such as a tensor?"
    expect.that(got == 0, "every forward leaves tensors behind: memory grows by the call", cause, "no bytes", got)
