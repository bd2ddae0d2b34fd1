"""The recipe panel: every toggle moves what it must, by the exact number, and nothing else."""

import html
import re

import pytest

from nanolm import impl
from nanolm.recipe import deep_stack, show, swaps
from nanolm.recipe.swaps import BASES, EVERYTHING, LLAMA_STYLE, SHAPE_7B, VANILLA

REFERENCE = impl.load("reference")
D, L, T_MAX = 4_096, 32, 8_192
BIASES = L * (4 * D + 16_384 + D + 2 * D) + D  # attention, FFN, two LayerNorms a layer, the final one


def asked(chosen, base=SHAPE_7B, S=8_192, implementation=REFERENCE):
    return swaps.ask(chosen, base, S, implementation, measure=False)


def card(answer, title):
    return next(card for card in answer.cards if card.title.startswith(title))


def test_the_two_corners():
    vanilla, modern = asked(VANILLA), asked(LLAMA_STYLE)
    assert (vanilla.total, vanilla.cache_per_token) == (7_002_005_504, 524_288)
    assert (modern.total, modern.cache_per_token) == (6_195_253_248, 131_072)
    assert asked(EVERYTHING).total == 6_195_253_248 + L * 2 * 128  # QK-norm: two gains of H a layer


@pytest.mark.parametrize(
    "name, moves",
    {
        "rmsnorm": -(2 * L + 1) * D,  # the biases of the norms go
        "pre_norm": 0,
        "rope": -T_MAX * D,
        "swiglu": L * (3 * D * 11_008 - 8 * D * D - 16_384 - D),  # 11,008 is a little above 8D/3
        "gqa": -L * 2 * 24 * 128 * (D + 1),
        "bias_free": -BIASES,
        "qk_norm": L * 2 * 128,
        "z_loss": 0,
    }.items(),
)
def test_each_toggle_moves_the_vanilla_parameters_by(name, moves):
    assert asked(VANILLA.but(**{name: True})).total - 7_002_005_504 == moves


def test_untied_costs_a_table():
    assert asked(LLAMA_STYLE.but(tied=False)).total == 6_195_253_248 + 128_000 * D


@pytest.mark.parametrize("g", [2, 4, 8, 16, 32])
def test_gqa_divides_the_cache_by_g(g):
    assert asked(VANILLA.but(gqa=True, g=g)).cache_per_token == 524_288 // g


@pytest.mark.parametrize("name", [name for name in swaps.LABELS if name != "gqa"])
def test_only_gqa_moves_the_cache(name):
    changed = VANILLA.but(**{name: not getattr(VANILLA, name)})
    assert asked(changed).cache_per_token == 524_288


def test_cache_at_32k():
    assert asked(VANILLA.but(rope=True), S=32_768).cache == 17_179_869_184
    assert asked(LLAMA_STYLE, S=32_768).cache == 4_294_967_296
    assert card(asked(LLAMA_STYLE, S=32_768), "KV cache at").number == "4.29 GB"


def test_learned_positions_are_a_wall_and_rope_is_none():
    learned, rope = asked(VANILLA, S=32_768), asked(VANILLA.but(rope=True), S=32_768)
    assert learned.cache is None and card(learned, "KV cache at").number == "out of reach"
    assert card(learned, "Usable context").number == "8,192 tokens"
    assert "8,193 has no row" in card(learned, "Usable context").note
    assert card(rope, "Usable context").number == "8,192 and beyond"
    assert "14 of 64 pairs" in card(rope, "Usable context").note


def test_the_arithmetic_adds_up():
    for chosen in (VANILLA, LLAMA_STYLE, EVERYTHING):
        answer = asked(chosen)
        lines = dict(card(answer, "Parameters").arithmetic)
        numbers = [int(right.replace(",", "")) for right in lines.values()]
        names = list(lines)
        layer = names.index("a layer")
        assert sum(numbers[:layer]) == numbers[layer]
        assert sum(numbers[layer + 1 : -1]) == numbers[-1] == answer.total
        assert sum(size for _, size, _ in show.part_rows(answer)) == answer.total
        assert answer.total == answer.parts.total


@pytest.mark.parametrize("name", BASES)
def test_a_preset_shows_what_it_is(name):
    base = BASES[name]
    answer = asked(swaps.recipe_of(base), base, S=1_024)
    assert answer.cfg == base
    assert answer.total == REFERENCE.count_parameters(base)


def test_other_shapes_change_their_ffn_with_its_kind():
    gpt2, llama3 = BASES["gpt2-small"], BASES["llama3-8b"]
    assert asked(swaps.recipe_of(gpt2).but(swiglu=True), gpt2, S=64).cfg.F == 2_048  # 8D/3 at 768
    assert asked(swaps.recipe_of(llama3).but(swiglu=False), llama3).cfg.F == 4 * 4_096
    assert asked(swaps.recipe_of(BASES["gemma2-2b"]), BASES["gemma2-2b"], S=16_384).cache < 16_384 * 106_496


def test_g_must_divide_the_heads():
    assert swaps.choices_of_g(9) == [3, 9] and swaps.default_g(9) == 3 and swaps.default_g(1) == 1
    with pytest.raises(ValueError, match="g = 4 query heads can't share a K/V head evenly: g must divide N = 9"):
        asked(LLAMA_STYLE, BASES["smollm2-135m"])


def test_a_stub_leaves_its_card_with_one_sentence():
    answer = swaps.ask(EVERYTHING, SHAPE_7B, 8_192, impl.load("exercises_en"))
    assert card(answer, "Parameters").note.startswith("exercises_en/budget.py: count_parameters is not started.")
    assert card(answer, "Usable context").note.startswith("exercises_en/rope.py: rope_frequencies is not started.")
    assert answer.stack is None and show.text(answer) and show.page(answer)


def test_a_wrong_count_is_said():
    class Wrong:
        name, folder = "wrong", REFERENCE.folder

        def __getattr__(self, name):
            return (lambda cfg: 1) if name == "count_parameters" else getattr(REFERENCE, name)

    found = card(asked(LLAMA_STYLE, implementation=Wrong()), "Parameters")
    assert (found.number, found.light) == ("1", "bad")
    assert found.note == "count_parameters says this, but the built model holds 6,195,253,248"


@pytest.mark.proof
def test_stability_is_measured():
    vanilla, modern = (deep_stack.measure(chosen, REFERENCE) for chosen in (VANILLA, EVERYTHING))
    assert not vanilla.learned and vanilla.loss > 3.3
    assert modern.learned and modern.loss < 2.9
    assert vanilla.saturation > 0.9 and modern.saturation < 0.7
    assert vanilla.pull < 1e-6 and modern.pull == pytest.approx(2 * 1e-4 * deep_stack.LOG_Z, rel=1e-3)
    assert vanilla.growth == pytest.approx(1, abs=0.05) and modern.growth > 3
    assert not vanilla.guarded and modern.guarded
    assert deep_stack.measure(EVERYTHING.but(tied=False), REFERENCE) is modern  # remembered


def test_page_and_text_hold_the_same_numbers():
    answer = asked(LLAMA_STYLE, S=32_768)
    words = html.unescape(re.sub(r"<[^>]*>", " ", show.page(answer)))
    for number in ("6,195,253,248", "131,072 bytes", "4.29 GB", "16,777,216"):
        assert number in words and number in show.text(answer, arithmetic=True)


def test_the_panel_follows_its_checkboxes(monkeypatch):
    pytest.importorskip("ipywidgets", reason="needs the notebooks' extra: pip install -e .[notebooks]")
    pytest.importorskip("matplotlib", reason="needs the notebooks' extra: pip install -e .[notebooks]")
    from nanolm.recipe.panel import Panel

    some = deep_stack.measure(EVERYTHING, REFERENCE)
    monkeypatch.setattr(deep_stack, "measure", lambda chosen, implementation: some)
    panel = Panel(REFERENCE)
    assert "6,195,253,248" in panel.cards.value and "131,072 bytes" in panel.cards.value
    panel.toggles["gqa"].value = False
    assert "524,288 bytes" in panel.cards.value
    panel.toggles["rope"].value = False
    assert "out of reach" in panel.cards.value
    panel.set(VANILLA)
    assert "7,002,005,504" in panel.cards.value and not any(
        box.value for name, box in panel.toggles.items() if name != "tied"
    )
    panel.questions.children[1].value = True
    assert "16,384 x 4,096" in panel.arithmetic.value
    panel.questions.children[2].value = True
    assert "2 x 32 x 32 x 128 x 2" in panel.arithmetic.value and not panel.questions.children[1].value
    panel.base.value = "smollm2-135m"
    assert "134,515,008" in panel.cards.value and panel.g.options == (3, 9)
