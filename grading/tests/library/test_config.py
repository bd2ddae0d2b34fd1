"""ModelConfig: the notation, the defaults, and a sentence with the numbers where it is impossible."""

import dataclasses

import pytest

from nanolm.config import PRESETS, ModelConfig, preset


def small(**changes):
    return ModelConfig(**{"L": 2, "V": 10, "D": 12, "N": 6, "ffn_dim": 8, **changes})


def test_notation_and_defaults():
    cfg = small(K=2)
    assert (cfg.L, cfg.V, cfg.D, cfg.H, cfg.F, cfg.N, cfg.K, cfg.G) == (2, 10, 12, 2, 8, 6, 2, 3)
    assert small().K == 6 and small(H=10).H == 10


def test_it_is_frozen_and_copies_by_but():
    cfg = small()
    with pytest.raises(dataclasses.FrozenInstanceError):
        cfg.D = 3
    assert cfg.but(K=3).G == 2 and cfg.K == 6


@pytest.mark.parametrize("name", ["B", "T", "S"])
def test_sizes_of_a_batch_are_no_configuration(name):
    with pytest.raises(AttributeError, match=f"{name} belongs to a batch"):
        getattr(small(), name)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"N": 5}, "D = 12 can't be split into N = 5 heads"),
        ({"K": 4}, "N = 6 query heads can't share K = 4"),
        ({"H": 3}, "H = 3 is odd"),
        ({"L": 0}, "L = 0 must be a whole number of at least 1"),
        ({"ffn_dim": 2.5}, "ffn_dim = 2.5 must be a whole number"),
        ({"V": True}, "V = True must be a whole number"),
        ({"norm": "batchnorm"}, "norm = 'batchnorm' is not known: choose one of rmsnorm, layernorm"),
        ({"rope_theta": 0}, "rope_theta = 0 must be greater than 0"),
        ({"attn_softcap": -1.0}, "attn_softcap = -1.0 must be greater than 0, or None"),
        ({"windows": 0}, "a window = 0 must be"),
        ({"windows": (2, None, 3)}, "windows has 3 entries for L = 2 layers"),
    ],
)
def test_an_impossible_configuration_says_the_numbers(changes, says):
    with pytest.raises(ValueError, match=says):
        small(**changes)


def test_windows_by_layer():
    assert [small(windows=w).window_of(1) for w in (None, 4, (4, None), [None, 3])] == [None, 4, None, 3]
    gemma = preset("gemma2-2b")
    assert [gemma.window_of(layer) for layer in range(4)] == [4096, None, 4096, None]


def test_presets():
    assert set(PRESETS) >= {"tiny", "gpt2-small", "llama2-7b", "llama3-8b", "smollm2-135m", "mistral-7b", "gemma2-2b"}
    with pytest.raises(ValueError, match="There is no preset 'gpt5': choose one of tiny, gpt2-small"):
        preset("gpt5")
