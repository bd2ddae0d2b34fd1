"""Questions to budget.py about the 2019 parts, QK-norm and the sandwich (bonus).

B batch, T query length, S key length, D width, N query heads, K key/value heads, H head size, L layers. A part
that the code does not look at yet counts as not started, not as wrong.
"""

import math

import pytest

from machinery import expect
from machinery.attending import not_started
from machinery.draw import Draw, added_by_shapes, drawn_like, drawn_sizes, tiny
from nanolm.config import ModelConfig, preset


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
