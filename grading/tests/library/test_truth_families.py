"""Our model equals Hugging Face's, family by family, and the comparison sees every field of the configuration."""

import pytest
import torch

from grading.proof.hf_twins import (
    FP32_TOLERANCE,
    FP64_TOLERANCE,
    both_logits,
    difference,
    our_model,
    our_state,
    random_tokens,
    twin,
)
from nanolm.cache import Cache
from nanolm.config import ModelConfig
from nanolm.impl import load
from nanolm.model.given_parts import RecipeBlock, make_block
from nanolm.model.weights import halves_to_neighbours

# Every size differs, H is not D / N, eps and theta are far from the defaults.
LLAMA = ModelConfig(L=3, V=61, D=36, N=6, K=2, H=8, ffn_dim=40, T_max=64, norm_eps=0.02, rope_theta=500.0)
GEMMA2 = LLAMA.but(
    tie_embeddings=True,
    norm_position="sandwich",
    ffn="geglu",
    attn_softcap=4.0,
    final_softcap=30.0,
    windows=(5, None, 5),
    embed_scale=36**0.5,
)
GPT2 = ModelConfig(
    L=3, V=61, D=48, N=6, ffn_dim=80, T_max=64, tie_embeddings=True, norm_eps=0.02,
    norm="layernorm", positions="learned", ffn="gelu", bias=True,
)  # fmt: skip

CASES = {
    "llama": ("llama", LLAMA),
    "llama-tied": ("llama", LLAMA.but(tie_embeddings=True)),
    "llama-G1": ("llama", LLAMA.but(K=6)),
    "llama-G1-tied": ("llama", LLAMA.but(K=6, tie_embeddings=True)),
    "llama-GN": ("llama", LLAMA.but(K=1)),
    "llama-GN-tied": ("llama", LLAMA.but(K=1, tie_embeddings=True)),
    "llama-H-is-D/N": ("llama", LLAMA.but(D=48)),
    "llama-biases": ("llama", LLAMA.but(bias=True)),
    "gpt2": ("gpt2", GPT2),
    "gpt2-untied": ("gpt2", GPT2.but(tie_embeddings=False)),
    "gpt1-post-norm": ("gpt1", GPT2.but(norm_position="post", ffn_dim=4 * 48)),
    "gemma2": ("gemma2", GEMMA2),
    "mistral": ("mistral", LLAMA.but(windows=5)),
    "qwen3": ("qwen3", LLAMA.but(qk_norm=True)),
}
each_case = pytest.mark.parametrize(("family", "cfg"), CASES.values(), ids=CASES)


@each_case
def test_logits_equal_hugging_face(family, cfg):
    ours, theirs = both_logits(cfg, family, random_tokens(cfg))
    assert theirs.abs().max() >= 10, "the logits are too small for the tolerance to mean anything"
    assert difference(ours, theirs) <= FP32_TOLERANCE


@each_case
def test_logits_equal_hugging_face_in_true_fp64(family, cfg):
    ours, theirs = both_logits(cfg, family, random_tokens(cfg), double=True)
    assert ours.dtype == theirs.dtype == torch.float64
    assert difference(ours, theirs) <= FP64_TOLERANCE


@each_case
def test_cached_chunks_equal_hugging_face(family, cfg):
    tokens, hf = random_tokens(cfg), twin(cfg, family)
    model, cache = our_model(cfg, our_state(hf, cfg, family)), Cache(cfg)
    with torch.no_grad():
        ours = torch.cat([model(chunk, cache) for chunk in tokens.split((7, 1, 1, 11, 3), dim=1)], dim=1)
        theirs = hf(tokens).logits
    assert cache.length == tokens.shape[1]
    assert difference(ours, theirs) <= FP32_TOLERANCE


# Fields that no weight depends on: one wrong value each, which the comparison must see.
WRONG = {
    "llama": {"norm_eps": 1e-5, "rope_theta": 10_000.0, "windows": 16, "norm_position": "post"},
    "gpt2": {"norm_eps": 1e-5, "norm_position": "post"},
    "gpt1-post-norm": {"norm_eps": 1e-5, "norm_position": "pre"},
    "gemma2": {
        "norm_eps": 1e-5,
        "rope_theta": 10_000.0,
        "ffn": "swiglu",
        "attn_softcap": None,
        "final_softcap": None,
        "windows": (None, 5, None),
        "embed_scale": 1.0,
    },
    "mistral": {"norm_eps": 1e-5, "rope_theta": 10_000.0, "windows": 6},
    "qwen3": {"norm_eps": 1e-5, "rope_theta": 10_000.0},
}


@pytest.mark.parametrize(
    ("case", "field", "value"), [(case, *change) for case, changes in WRONG.items() for change in changes.items()]
)
def test_the_comparison_sees_a_wrong_field(case, field, value):
    family, cfg = CASES[case]
    hf, tokens = twin(cfg, family), random_tokens(cfg)
    wrong = our_model(cfg.but(**{field: value}), our_state(hf, cfg, family))
    with torch.no_grad():
        assert difference(wrong(tokens), hf(tokens).logits) >= 100 * FP32_TOLERANCE


@pytest.mark.parametrize("case", ["llama", "gemma2", "mistral", "qwen3"])
def test_the_comparison_sees_rows_left_in_halves(case):
    family, cfg = CASES[case]
    hf, tokens = twin(cfg, family), random_tokens(cfg)
    wrong = our_model(cfg, our_state(hf, cfg, family, reorder=lambda rows, H: rows))
    with torch.no_grad():
        logits, theirs = wrong(tokens), hf(tokens).logits
    assert difference(logits, theirs) >= 100 * FP32_TOLERANCE
    assert difference(logits[:, 0], theirs[:, 0]) <= FP32_TOLERANCE, "position 0 is not turned and can't tell"


def test_halves_to_neighbours_interleaves_each_head():
    rows = torch.tensor([0, 1, 2, 10, 11, 12, 20, 21, 22, 30, 31, 32])  # two heads of H = 6
    assert halves_to_neighbours(rows, 6).tolist() == [0, 10, 1, 11, 2, 12, 20, 30, 21, 31, 22, 32]


@pytest.mark.parametrize(("rows", "H"), [(12, 8), (9, 3)])
def test_halves_to_neighbours_refuses_other_shapes(rows, H):
    with pytest.raises(ValueError, match=f"{rows} rows .* H = {H}"):
        halves_to_neighbours(torch.zeros(rows, 2), H)


def test_the_recipe_chooses_the_block():
    impl = load("reference")
    assert type(make_block(LLAMA, 0, impl)) is impl.Block
    for old in ({"norm": "layernorm"}, {"norm_position": "post"}, {"ffn": "gelu"}):
        assert type(make_block(LLAMA.but(**old), 0, impl)) is RecipeBlock
