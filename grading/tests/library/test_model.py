"""The language model around the block: generation with and without a cache, positions, bad input."""

import types

import pytest
import torch

from nanolm.cache import Cache, LayerCache
from nanolm.config import preset
from nanolm.impl import ROOT, load
from nanolm.model import LanguageModel

TINY = preset("tiny")


def model(cfg=TINY, impl=None, seed=0):
    torch.manual_seed(seed)
    made = LanguageModel(cfg, impl or load(str(ROOT / "reference"))).eval()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.copy_(torch.randn(parameter.shape) * 0.35)
    return made


def without_cache(made):
    """The same model with right attentions that never look at their cache, as a core student's."""
    for block in made.blocks:
        attention = block.attn
        attention.forward = types.MethodType(
            lambda self, x, cos, sin, cache=None: type(self).forward(self, x, cos, sin), attention
        )
    return made


PROMPT = torch.tensor([5, 0, 17, 3])


def test_generation_is_the_same_with_and_without_a_cache():
    with_cache, recomputed = model(), without_cache(model())
    cache = Cache(TINY)
    recomputed(PROMPT[None], cache)
    assert cache.length == 0
    assert list(with_cache.generate(PROMPT, 12)) == list(recomputed.generate(PROMPT, 12))


def test_greedy_takes_the_largest_logit():
    made, tokens = model(), PROMPT
    for token in made.generate(PROMPT, 5):
        assert token == int(made(tokens[None])[0, -1].argmax())
        tokens = torch.cat((tokens, torch.tensor([token])))


def test_sampling_follows_its_generator_and_temperature():
    made = model()

    def sample(seed, temperature=1.0):
        generator = torch.Generator().manual_seed(seed)
        return list(made.generate(PROMPT, 20, temperature=temperature, generator=generator))

    assert sample(1) == sample(1)
    assert sample(1, 5.0) != sample(2, 5.0)
    assert sample(1, 1e-4) == list(made.generate(PROMPT, 20))


def test_generation_ends_at_a_stop_token_or_after_count():
    made = model()
    whole = list(made.generate(PROMPT, 8))
    stop = whole[3]
    assert list(made.generate(PROMPT, 8, stop=(stop,))) == whole[: whole.index(stop) + 1]
    assert len(whole) == 8 and list(made.generate(PROMPT, 0)) == []


@pytest.mark.parametrize(
    ("prompt", "temperature", "says"),
    [
        ([], 0.0, "the prompt is empty"),
        ([3, 61], 0.0, "outside the vocabulary of V = 61"),
        ([-1], 0.0, "outside the vocabulary of V = 61"),
        ([3], -1.0, "temperature = -1.0 must not be negative"),
    ],
)
def test_bad_input_is_one_sentence(prompt, temperature, says):
    with pytest.raises(ValueError, match=says):
        next(model().generate(torch.tensor(prompt, dtype=torch.long), 3, temperature=temperature))


def test_a_learned_table_has_no_row_past_its_end():
    gpt2 = model(TINY.but(positions="learned", norm="layernorm", ffn="gelu", bias=True, T_max=10))
    assert gpt2(torch.zeros(1, 10, dtype=torch.long)).shape == (1, 10, 61)
    with pytest.raises(ValueError, match="position 10 has no row in a learned table of T_max = 10"):
        gpt2(torch.zeros(1, 11, dtype=torch.long))


def test_tying_reads_the_embedding():
    made = model(TINY.but(tie_embeddings=True)).requires_grad_(False)
    before = made(PROMPT[None])
    with torch.no_grad():
        made.embed.weight[36] += 1.0  # a token that the prompt does not hold
    moved = (made(PROMPT[None]) - before).abs().amax(dim=(0, 1))
    assert moved[36] > 1e-3 and float(moved.sum() - moved[36]) == 0.0
    assert "head.weight" not in made.state_dict()


def test_tables_are_built_once_a_forward():
    reference, calls = load(str(ROOT / "reference")), []

    class Counting:
        def __getattr__(self, name):
            if name == "rope_cos_sin":
                calls.append(name)
            return getattr(reference, name)

    model(impl=Counting())(PROMPT[None])
    assert calls == ["rope_cos_sin"]


def test_a_windowed_cache_keeps_what_the_next_query_needs():
    cache, made = LayerCache(window=3), torch.arange(24.0).view(1, 1, 12, 2)
    for start, count, expected in ((0, 4, 4), (4, 1, 3), (5, 1, 3), (6, 4, 6)):
        new = made[:, :, start : start + count]
        k, v = cache.append(new, -new)
        assert k.shape[2] == min(expected, 2 + count + (start == 0) * 2)
        assert torch.equal(k, -v) and torch.equal(k, made[:, :, start + count - k.shape[2] : start + count])
    assert cache.length == 10 and cache.nbytes == 2 * 2 * 2 * 4


def test_the_cache_counts_the_layer_that_saw_least():
    cache = Cache(TINY)
    cache[0].append(torch.zeros(1, 2, 3, 8), torch.zeros(1, 2, 3, 8))
    assert cache.length == 0 and cache[0].length == 3
