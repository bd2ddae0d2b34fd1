"""The sample submissions are what their names say, measured against the reference."""

import re

import pytest
import torch

from grading.demo import samples
from grading.demo.made_up_class import programs
from nanolm import impl
from nanolm.cache import LayerCache
from nanolm.config import PRESETS, ModelConfig

CFG = ModelConfig(L=2, V=61, D=36, N=6, K=2, H=8, ffn_dim=40, norm_eps=1e-3, rope_theta=500.0, windows=(3, None))
DEEP = CFG.but(qk_norm=True, attn_softcap=4.0)
SHARED_BY_ALL = CFG.but(K=1)  # one key/value head: every order of heads is the same
reference = impl.load("reference")


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def with_weights(module):
    """The module in fp64 with the same loud weights in every implementation."""
    module.double()
    for seed, name in enumerate(sorted(module.state_dict())):
        parameter = module.get_parameter(name)
        parameter.data = normal(*parameter.shape, seed=seed) * 0.35 + (parameter.dim() == 1)
    return module


def turn(T, cfg=CFG, start=0):
    """cos and sin by the reference, so that no other part's mistake comes in."""
    return reference.rope_cos_sin(torch.arange(start, start + T), reference.rope_frequencies(cfg.H, cfg.rope_theta))


def attention(which, cfg, layer=0):
    module = with_weights(which.GroupedQueryAttention(cfg, layer))
    return module(normal(2, 5, cfg.D), *turn(5, cfg))


def attention_in_chunks(which, cfg, layer):
    module, cache = with_weights(which.GroupedQueryAttention(cfg, layer)), LayerCache(cfg.window_of(layer))
    x = normal(2, 7, cfg.D)
    return torch.cat([module(x[:, a:b], *turn(b - a, cfg, a), cache) for a, b in ((0, 4), (4, 6), (6, 7))], dim=1)


def backward_of(which, x, weight):
    return which.rmsnorm_backward(x, weight, 1e-2, normal(*x.shape, seed=9))


TOKENS = torch.arange(24).reshape(3, 8) % 7
LOGITS = normal(3, 8, 7) * 9
SOME = torch.where(TOKENS == 3, -100, TOKENS)
NOISE = torch.rand(3, 8, generator=torch.Generator().manual_seed(1))
ROWS = normal(4, 3, 12, seed=2) + 3

# What each exercise answers. The keys begin with the exercise's name.
PROBES = {
    "RMSNorm": lambda i: with_weights(i.RMSNorm(12, 0.1))(ROWS),
    "RMSNorm in bf16": lambda i: i.RMSNorm(12)(ROWS.bfloat16()),
    "ffn_dim": lambda i: [i.ffn_dim(*a) for a in ((512,), (1000, 1.0, 64), (4096,), (4096, 1.3, 1024), (576, 1.0, 64))],
    "SwiGLU": lambda i: with_weights(i.SwiGLU(12, 20))(ROWS),
    "rmsnorm_backward": lambda i: backward_of(i, ROWS, normal(12)),
    "rmsnorm_backward of one row": lambda i: backward_of(i, ROWS[0, 0], normal(12)),
    "rope_frequencies": lambda i: i.rope_frequencies(10, 500.0),
    "rope_frequencies by default": lambda i: i.rope_frequencies(10),
    "rope_cos_sin": lambda i: i.rope_cos_sin(torch.tensor([[7.0, 8.5], [0.0, 901.0]]), torch.tensor([1.0, 0.3, 0.01])),
    "apply_rope": lambda i: i.apply_rope(normal(2, 3, 5, 8), *turn(5)),
    "apply_rope in bf16": lambda i: i.apply_rope(normal(2, 3, 5, 8).bfloat16(), *turn(5)),
    "repeat_kv": lambda i: i.repeat_kv(normal(2, 3, 4, 5), 2),
    "causal_mask": lambda i: [i.causal_mask(*a) for a in ((4, 4), (2, 5), (4, 4, 2), (2, 5, 3), (1, 5, 1))],
    "softcap": lambda i: i.softcap(normal(9) * 100, 50.0),
    "GroupedQueryAttention": lambda i: attention(i, CFG),
    "GroupedQueryAttention, K = 1": lambda i: attention(i, SHARED_BY_ALL, 1),
    "GroupedQueryAttention, deep": lambda i: attention(i, DEEP, 1),
    "GroupedQueryAttention, cache": lambda i: attention_in_chunks(i, DEEP, 1),
    "GroupedQueryAttention, cache and window": lambda i: attention_in_chunks(i, CFG, 0),
    "Block": lambda i: with_weights(i.Block(DEEP))(normal(2, 5, CFG.D), *turn(5)),
    "count_parameters": lambda i: [i.count_parameters(cfg.but(qk_norm=q)) for cfg in PRESETS.values() for q in (0, 1)],
    "kv_cache_bytes_per_token": lambda i: [i.kv_cache_bytes_per_token(cfg, 4) for cfg in PRESETS.values()],
    "causal_lm_loss": lambda i: [i.causal_lm_loss(LOGITS, t) for t in (TOKENS, SOME, torch.full_like(TOKENS, -100))],
    "z_loss": lambda i: [i.z_loss(LOGITS, 0.1, mask) for mask in (None, TOKENS > 2, TOKENS > 9)],
    "masked_lm_corruption": lambda i: i.masked_lm_corruption(TOKENS, NOISE, TOKENS + 50, 99, rate=0.6),
    "prefix_lm_mask": lambda i: i.prefix_lm_mask(5, 2),
    "prefix_lm_targets": lambda i: i.prefix_lm_targets(TOKENS, 3),
    "span_corruption": lambda i: i.span_corruption(TOKENS[0], [(1, 2), (5, 1)], torch.tensor([90, 91, 92])),
}


def flat(answer):
    """An answer as a list of tensors and numbers."""
    return [part for item in answer for part in flat(item)] if isinstance(answer, (list, tuple)) else [answer]


def agree(got, expected):
    if not isinstance(expected, torch.Tensor):
        return type(got) is type(expected) and got == expected
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return False
    close = {torch.float64: 1e-6, torch.float32: 1e-6, torch.bfloat16: 2e-2}.get(got.dtype, 0.0)  # cos and sin are fp32
    return torch.allclose(got.double(), expected.double(), rtol=close, atol=close)


def verdicts(sample):
    """Probe -> "right", "wrong" or "not started" for one sample submission."""
    submission, found = impl.load(str(samples.folder(sample))), {}
    for name, probe in PROBES.items():
        expected = flat(probe(reference))
        try:
            got = flat(probe(submission))
        except NotImplementedError:
            found[name] = "not started"
            continue
        right = len(got) == len(expected) and all(map(agree, got, expected))
        found[name] = "right" if right else "wrong"
    return found


def where(found, verdict):
    return {name for name, value in found.items() if value == verdict}


def test_every_exercise_is_probed():
    assert {re.match(r"\w+", name)[0] for name in PROBES} == set(impl.FILE_OF)


def test_all_right_equals_the_reference():
    assert where(verdicts("all_right"), "right") == set(PROBES)


def test_five_mistakes_has_these_five_and_no_other():
    found = verdicts("five_mistakes")
    assert not where(found, "not started")
    assert where(found, "wrong") == {
        "RMSNorm",  # 1: centres
        "RMSNorm in bf16",
        "ffn_dim",  # 2: rounds to the nearest multiple
        "rope_frequencies",  # 3: theta is hard-coded
        "repeat_kv",  # 4: [k0 k1 k0 k1]; attention asks for it where it computes the scores itself
        "GroupedQueryAttention, deep",
        "GroupedQueryAttention, cache",
        "Block",
        "kv_cache_bytes_per_token",  # 5: counts query heads
    }


def test_half_finished_is_right_as_far_as_it_goes():
    found = verdicts("half_finished")
    assert not where(found, "wrong")
    assert where(found, "right") == {
        "RMSNorm", "RMSNorm in bf16", "ffn_dim", "SwiGLU",
        "rope_frequencies", "rope_frequencies by default", "rope_cos_sin",
    }  # fmt: skip


@pytest.mark.parametrize("sample", samples.SAMPLES)
def test_a_sample_looks_like_a_students_folder(sample):
    folder = samples.folder(sample)
    names = {"__init__.py", *(f"{module}.py" for module in impl.CONTRACT)}
    assert {path.name for path in folder.iterdir() if path.is_file()} == names
    assert not any("# solution" in path.read_text(encoding="utf-8") for path in folder.glob("*.py"))


def test_all_right_is_written_in_other_words():
    for module in impl.CONTRACT:
        text = samples.files("all_right")[f"{module}.py"]
        assert text != programs.files(programs.Program())[f"{module}.py"], module
