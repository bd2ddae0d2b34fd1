"""Questions to budget.py and to ffn_dim: what a configuration costs.

L layers, V vocabulary, D width, F FFN width, N query heads, K key/value heads, H head size.
"""

import pytest

from machinery import expect
from machinery.draw import Draw, added_by_shapes, drawn_like, drawn_sizes, tiny
from machinery.kinds import leaves_torch_as_it_was
from nanolm.config import preset

# ffn_dim ----------------------------------------------------------------------------------------


@pytest.mark.points(1)
def test_swiglu_ffn_dim_is_8D_over_3(student):
    cause = "Is it 8D/3 rounded up? Three matrices at 4D would be 1.5 times the parameters."
    draw = Draw(180)
    for D, multiple_of, expected in ((4096, 256, 11_008), (512, 256, 1_536), (768, 64, 2_048)):
        steps = draw.whole(0, 1, 40)
        D, expected = D + 96 * steps, expected + 256 * steps  # 8D/3 is as far from the next multiple as before
        got = student.ffn_dim(D, 1.0, multiple_of)
        symptom = f"ffn_dim of D = {D}, up to a multiple of {multiple_of}, is wrong"
        expect.that(got == expected, symptom, cause, expected, got)


@pytest.mark.points(1)
def test_swiglu_ffn_dim_rounds_up(student):
    cause = "Does it go to the next multiple above, also where the one below is nearer?"
    draw = Draw(181)
    for D, multiple_of, expected in ((1000, 256, 2_816), (512, 64, 1_408), (1000, 64, 2_688), (96, 256, 256)):
        factor = draw.whole(1, 2, 40)  # three times as many of everything is three times the width
        D, multiple_of, expected = (factor * number for number in (D, multiple_of, expected))
        got = student.ffn_dim(D, 1.0, multiple_of)
        symptom = f"ffn_dim of D = {D}, up to a multiple of {multiple_of}, is wrong"
        expect.that(got == expected, symptom, cause, expected, got)


@pytest.mark.points(0)
def test_swiglu_ffn_dim_keeps_an_exact_multiple(student):
    cause = "Does an F that is a multiple already stay as it is?"
    draw = Draw(182)
    for D, multiple_of, expected in ((768, 256, 2_048), (96, 64, 256), (3, 8, 8)):
        factor = draw.whole(1, 2, 40)
        D, multiple_of, expected = (factor * number for number in (D, multiple_of, expected))
        got = student.ffn_dim(D, 1.0, multiple_of)
        expect.that(got == expected, f"ffn_dim of D = {D}, multiple of {multiple_of}, is wrong", cause, expected, got)


@pytest.mark.points(1)
def test_swiglu_ffn_dim_of_llama3_8b(student):
    cause = "Is the multiplier applied before the rounding? 8/3 * 4096 * 1.3 goes up to 14 * 1024."
    steps = Draw(190).whole(0, 1, 40)  # of 13 * 1024 in F
    got, expected = student.ffn_dim(4096 + 3840 * steps, 1.3, 1024), 14_336 + 13_312 * steps
    expect.that(got == expected, "ffn_dim(4096, 1.3, 1024) is wrong", cause, expected, got)


@pytest.mark.points(0)
def test_swiglu_ffn_dim_is_an_int(student):
    kind = type(student.ffn_dim(512)).__name__
    expect.same(kind, "int", "ffn_dim is not an int", "Is a width that nn.Linear takes, so no float?")


@pytest.mark.points(0)
def test_swiglu_ffn_dim_default_multiple_is_256(student):
    got = student.ffn_dim(100)
    cause = "Are the defaults multiplier 1.0 and multiple_of 256, as they were given?"
    expect.that(got == 512, "ffn_dim(100) is wrong", cause, 512, got)


# count_parameters -------------------------------------------------------------------------------


def counted(student, cfg, expected, symptom, cause):
    got = student.count_parameters(cfg)
    difference = f"{got} ({got - expected:+,})" if isinstance(got, int) else repr(got)
    expect.that(got == expected, symptom, cause, f"{expected:,}", difference)


@pytest.mark.points(1)
def test_budget_counts_three_ffn_matrices(student):
    cfg = drawn_sizes(183)
    got = student.count_parameters(cfg.but(ffn_dim=cfg.F + 1)) - student.count_parameters(cfg)
    cause, expected = "Has the gated FFN three matrices of D * F in every layer?", 3 * cfg.D * cfg.L
    expect.that(got == expected, "one more FFN unit costs a wrong number of parameters", cause, expected, got)


@pytest.mark.points(1)
def test_budget_counts_key_and_value_heads_once(student):
    # one more key/value head is a row block in w_k and one in w_v: D = 36, H = 8, L = 2
    cfg = drawn_sizes(184, N=6, K=2)
    got = student.count_parameters(cfg.but(K=3)) - student.count_parameters(cfg)
    cause, expected = "Do w_k and w_v have K * H rows, not N * H?", 2 * cfg.D * cfg.H * cfg.L
    expect.that(got == expected, "one more key/value head costs a wrong number of parameters", cause, expected, got)


@pytest.mark.points(0)
def test_budget_uses_the_head_size_of_the_configuration(student):
    # two more numbers a head in q, k, v and the output: N = 6, K = 2, D = 36, L = 2
    cfg = drawn_sizes(185)
    got = student.count_parameters(cfg.but(H=cfg.H + 2)) - student.count_parameters(cfg)
    cause = "Do w_q and w_o have N * H on one side? H need not be D / N."
    expected = 2 * (2 * cfg.N + 2 * cfg.K) * cfg.D * cfg.L
    expect.that(got == expected, "a larger head costs a wrong number of parameters", cause, expected, got)


@pytest.mark.points(0)
def test_budget_counts_the_norms(student):
    cfg = drawn_sizes(186)
    got = student.count_parameters(cfg.but(L=cfg.L + 1)) - student.count_parameters(cfg)
    cause, expected = "Are there two norms of D in every layer?", added_by_shapes(cfg.but(L=cfg.L + 1), cfg)
    expect.that(got == expected, "one more layer costs a wrong number of parameters", cause, f"{expected:,}", got)


@pytest.mark.points(1)
def test_budget_counts_the_head_unless_tied(student):
    cfg = drawn_sizes(187)
    got = student.count_parameters(cfg) - student.count_parameters(cfg.but(tie_embeddings=True))
    cause, expected = "Is the head V * D where it is untied, and nothing where it is tied?", cfg.V * cfg.D
    expect.that(got == expected, "tying saves a wrong number of parameters", cause, f"{expected:,}", got)


@pytest.mark.points(0)
def test_budget_is_an_int(student):
    for name in ("count_parameters", "kv_cache_bytes_per_token"):
        kind = type(getattr(student, name)(tiny())).__name__
        expect.same(kind, "int", f"{name} does not return an int", "Is there a / where // or * is meant?")


@pytest.mark.points(2)
def test_budget_of_llama3_8b(student):
    cause = "A layer is 41,943,040 + 176,160,768 + 8,192. Is everything outside the layers there, the final norm too?"
    cfg = drawn_like("llama3-8b", 194, deep=True)
    expected = 8_030_261_248 + added_by_shapes(cfg, preset("llama3-8b"))
    counted(student, cfg, expected, "Llama 3 8B comes out wrong", cause)


@pytest.mark.points(1)
def test_budget_of_other_modern_models(student):
    cause = "Is every size read from cfg, and nothing fixed?"
    for name, published in (("llama2-7b", 6_738_415_616), ("smollm2-135m", 134_515_008), ("mistral-7b", 7_241_732_096)):
        cfg = drawn_like(name, 195, deep=True)
        expected = published + added_by_shapes(cfg, preset(name))
        counted(student, cfg, expected, f"{name} comes out wrong", cause)


@pytest.mark.points(2)
def test_budget_cache_bytes_per_token(student):
    cause, draw = "Is it 2 (K and V) * L * K * H * bytes, with K heads, not N, and H, not D?", Draw(196)
    for name, model, published in (("llama3-8b", "Llama 3 8B", 131_072), ("llama2-7b", "Llama 2 7B", 524_288)):
        layers = draw.whole(32, 8, 99)
        got, expected = student.kv_cache_bytes_per_token(preset(name).but(L=layers)), published // 32 * layers
        expect.that(got == expected, f"{model}'s cache per token is wrong", cause, f"{expected:,}", got)


@pytest.mark.points(2)
def test_budget_cache_uses_the_head_size(student):
    cfg = drawn_sizes(188)  # L = 2, K = 2, H = 8, while D / N = 6
    got, expected = student.kv_cache_bytes_per_token(cfg), 4 * cfg.L * cfg.K * cfg.H
    cause = "Is it K * H numbers a layer? D and N do not come into it."
    expect.that(got == expected, "the tiny model's cache per token is wrong", cause, expected, got)


@pytest.mark.points(0)
def test_budget_cache_uses_bytes_per_element(student):
    cfg = drawn_sizes(189)
    got, expected = student.kv_cache_bytes_per_token(cfg, 4), 8 * cfg.L * cfg.K * cfg.H
    cause = "Is bytes_per_element used, and are these bytes, not bits?"
    expect.that(got == expected, "the cache per token at 4 bytes is wrong", cause, expected, got)


@pytest.mark.points(0)
def test_budget_of_edge_and_equal_sizes(student):
    cause = "Is every size read under its own name, whatever the others are?"
    for sizes in (
        {"L": 1, "V": 1, "D": 1, "N": 1, "K": 1, "H": 2, "ffn_dim": 1},
        {"L": 8, "V": 8, "D": 8, "N": 8, "K": 8, "H": 8, "ffn_dim": 8},
        {"L": 4, "V": 64, "D": 16, "N": 4, "K": 1, "H": 4, "ffn_dim": 16},
    ):
        cfg = tiny(**sizes)
        what = ", ".join(f"{name} = {size}" for name, size in sizes.items())
        counted(student, cfg, added_by_shapes(cfg, None), f"a model of {what} comes out wrong", cause)
        got, expected = student.kv_cache_bytes_per_token(cfg), 4 * cfg.L * cfg.K * cfg.H
        expect.that(got == expected, f"the cache per token for {what} is wrong", cause, expected, got)


@pytest.mark.points(0)
def test_budget_of_pairs_of_options(student):
    cause = "Do tying, QK-norm and the number of key/value heads change the count each by itself?"
    sizes = drawn_sizes(431)
    for changes in (
        {"tie_embeddings": True, "K": sizes.N},
        {"tie_embeddings": True, "K": 1},
        {"windows": 3, "attn_softcap": 2.0, "final_softcap": 3.0, "T_max": 9, "norm_eps": 1.0},
    ):
        cfg = sizes.but(**changes)
        counted(student, cfg, added_by_shapes(cfg, None), f"the count with {changes} comes out wrong", cause)


@pytest.mark.points(0)
def test_budget_of_very_large_models(student):
    cfg = preset("llama3-8b").but(L=126, D=16_384, N=128, K=8, H=128, ffn_dim=53_248)  # Llama 3.1 405B
    cause = "Are these Python's whole numbers, which have no end, and no fp32 or int32?"
    counted(student, cfg, added_by_shapes(cfg, None), "Llama 3.1 405B comes out wrong", cause)


@pytest.mark.points(0)
def test_budget_leaves_the_configuration_and_torch_as_they_are(student):
    cfg, cause = drawn_sizes(432), "Does the function only read cfg, and keep nothing of an earlier one?"
    first = student.count_parameters(cfg), student.kv_cache_bytes_per_token(cfg)
    bigger = cfg.but(V=cfg.V + 1, L=cfg.L + 1)
    counted(student, bigger, added_by_shapes(bigger, None), "a second configuration comes out wrong", cause)
    for name, number in zip(("count_parameters", "kv_cache_bytes_per_token"), first, strict=True):
        outcome = getattr(student, name).run(cfg)
        expect.that(outcome.output == number, f"{name} of the same configuration gives two answers", cause)
        expect.that(outcome.inputs[0] == cfg, f"{name} changes the configuration", cause)
    leaves_torch_as_it_was(student, "budget")


# Numbers of the lessons that follow from the two functions --------------------------------------


@pytest.mark.points(0)
def test_budget_cache_at_32k_context(student):
    # 32,768 tokens: 17.18 GB against 4.29 GB (10^9 bytes), a quarter for G = 4
    mha, gqa = preset("llama2-7b"), preset("llama2-7b").but(K=8)
    cause = "Does the cache shrink by G = N / K?"
    for cfg, expected in ((mha, 17_179_869_184), (gqa, 4_294_967_296)):
        got = student.kv_cache_bytes_per_token(cfg) * 32_768
        expect.that(got == expected, f"the cache of 32K tokens at K = {cfg.K} is wrong", cause, f"{expected:,}", got)


@pytest.mark.points(0)
def test_budget_shares_of_llama3_8b(student):
    cfg = preset("llama3-8b")
    total, layer = student.count_parameters(cfg), 218_112_000
    per_layer = total - student.count_parameters(cfg.but(L=31))
    expect.that(
        per_layer == layer, "a layer of Llama 3 8B is wrong", "Attention, MLP, two norms?", f"{layer:,}", per_layer
    )
    head = total - student.count_parameters(cfg.but(tie_embeddings=True))
    cause = "Is the head V * D?"
    expect.close(head / total, 0.0654196, 1e-4, "the untied head is not 6.5% of Llama 3 8B", cause)
    expect.close(2 * head / total, 0.1308392, 1e-4, "the embeddings are not 13% of Llama 3 8B", cause)
    mlp = 3 * cfg.D * cfg.F / per_layer
    expect.close(mlp, 0.8076620, 1e-4, "the MLP is not 81% of a layer", "Is F counted in three matrices?")
