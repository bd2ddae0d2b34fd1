"""Facts of the lessons on positions, the cache, stability, windows and vocabularies, measured on our code.

B batch, T query length, S key length, L layers, V vocabulary, D width, N query heads, K key/value heads, H head size.
"""

import math

import pytest
import torch

from nanolm import impl
from nanolm.config import ModelConfig, preset
from nanolm.model import LanguageModel
from nanolm.recipe import ledger

REFERENCE = impl.load("reference")
H = 128  # Llama's head size


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


# Positions --------------------------------------------------------------------------------------


def slowest_wavelength(base):
    """Tokens that the slowest plane needs for one whole turn."""
    return 2 * math.pi / float(REFERENCE.rope_frequencies(H, base)[-1])


def test_the_slowest_plane_turns_once_in_more_than_128k_only_with_llama3s_base():
    context = 128 * 1024
    assert slowest_wavelength(10_000.0) == pytest.approx(54_410, rel=1e-4)
    assert slowest_wavelength(500_000.0) == pytest.approx(2_559_196, rel=1e-4)
    assert slowest_wavelength(10_000.0) < context / 2 and slowest_wavelength(500_000.0) > 19 * context
    assert (preset("llama2-7b").rope_theta, preset("llama3-8b").rope_theta) == (10_000.0, 500_000.0)


def scores(first):
    """Scores of six queries against six keys at positions first .. first + 5, in fp64."""
    frequencies = REFERENCE.rope_frequencies(H).double()
    angles = torch.arange(first, first + 6).double()[:, None] * frequencies
    q, k = (REFERENCE.apply_rope(normal(6, H, seed=seed), angles.cos(), angles.sin()) for seed in (1, 2))
    return q @ k.T


def test_positions_100_to_105_score_as_6000_to_6005():
    assert torch.allclose(scores(100), scores(6_000), atol=1e-9)
    plain = normal(6, H, seed=1) @ normal(6, H, seed=2).T
    assert (scores(100) - plain).abs().max() > 1  # and yet positions matter


def test_rope_has_no_parameters_and_no_last_position():
    cfg = preset("tiny")
    model = LanguageModel(cfg, REFERENCE)
    assert not [name for name, _ in model.named_parameters() if "rope" in name or "position" in name]
    tokens = torch.zeros(1, 2, dtype=torch.long)
    assert model(tokens, positions=torch.tensor([8_192, 8_193])).isfinite().all()


def test_a_learned_table_costs_T_max_times_D():
    cfg = ModelConfig(L=32, V=128_000, D=4_096, N=32, ffn_dim=11_008, T_max=8_192, positions="learned")
    with_table = ledger.parameters(cfg, REFERENCE)
    assert with_table.positions == 8_192 * 4_096 == 33_554_432
    assert with_table.total - ledger.parameters(cfg.but(positions="rope"), REFERENCE).total == 33_554_432


@pytest.mark.parametrize("rows", [1_024, 8_192])
def test_a_learned_table_has_no_row_past_its_last(rows):
    """GPT-2: token 1,025 of 1,024; the lessons' 7B shape: token 8,193 of 8,192."""
    cfg = ModelConfig(L=1, V=8, D=4, N=2, ffn_dim=4, T_max=rows, positions="learned")
    model, token = LanguageModel(cfg, REFERENCE), torch.zeros(1, 1, dtype=torch.long)
    model(token, positions=torch.tensor([rows - 1]))  # token number `rows`
    with pytest.raises(ValueError, match=f"position {rows} has no row in a learned table of T_max = {rows}"):
        model(token, positions=torch.tensor([rows]))


# The cache --------------------------------------------------------------------------------------


def test_cache_of_a_7b_class_model():
    mha = ModelConfig(L=32, V=8, D=4_096, N=32, ffn_dim=8)
    gqa, mqa = mha.but(K=8), mha.but(K=1)
    per_token = {cfg.K: REFERENCE.kv_cache_bytes_per_token(cfg) for cfg in (mha, gqa, mqa)}
    assert per_token == {32: 524_288, 8: 131_072, 1: 16_384}
    assert (per_token[32] / 1_024, per_token[8] / 1_024) == (512, 128)  # KB of 1,024 bytes
    assert [per_token[32] / per_token[cfg.K] for cfg in (mha, gqa, mqa)] == [1, 4, 32] == [c.G for c in (mha, gqa, mqa)]
    whole = [32_768 * per_token[K] for K in (32, 8)]
    assert [f"{size / 1e9:.2f}" for size in whole] == ["17.18", "4.29"]
    assert [size / 2**30 for size in whole] == [16, 4]


def test_the_lessons_g_is_K_in_one_and_G_in_the_other():
    cfg = preset("llama3-8b")
    assert (cfg.N, cfg.K, cfg.G) == (32, 8, 4)
    assert cfg.K * cfg.G == cfg.N


# Stability --------------------------------------------------------------------------------------

SCALES = (1, 2, 4)


def last_querys_weights(qk_norm, scale):
    """Attention weights (B, N, S) of the last of S = 32 tokens while the projections of q and k grow by `scale`.

    Half of a token's vector is random and makes q and k; the other half names the token and is its
    value, so that the output of the attention is its weights.
    """
    S = 32
    cfg = ModelConfig(L=1, V=8, D=64, N=2, K=1, H=S, ffn_dim=8, qk_norm=qk_norm)
    part, zero, one = REFERENCE.GroupedQueryAttention(cfg).double(), torch.zeros(S, S), torch.eye(S)
    part.w_q.weight.data = torch.cat((scale * normal(2 * S, S, seed=4) * S**-0.5, torch.cat((zero, zero))), dim=1)
    part.w_k.weight.data = torch.cat((scale * normal(S, S, seed=5) * S**-0.5, zero), dim=1)
    part.w_v.weight.data = torch.cat((zero, one), dim=1).double()
    part.w_o.weight.data = torch.eye(2 * S).double()
    x = torch.cat((normal(16, S, S, seed=3), one.expand(16, S, S)), dim=-1)  # (B, S, D)
    with torch.no_grad():
        return part(x, torch.ones(S, S // 2), torch.zeros(S, S // 2))[:, -1].view(16, cfg.N, S)


def sharpness(qk_norm):
    """By scale: the mean largest weight, and how far logits lie apart at most."""
    rows = [last_querys_weights(qk_norm, scale) for scale in SCALES]
    assert all(torch.allclose(row.sum(dim=-1), torch.ones(16, 2).double()) for row in rows)
    spread = [float((row.amax(dim=-1) / row.amin(dim=-1)).log().max()) for row in rows]
    return [float(row.amax(dim=-1).mean()) for row in rows], spread


def test_softmax_saturates_as_projections_grow():
    largest, spread = sharpness(qk_norm=False)
    assert largest[0] < 0.25 and largest[-1] > 0.9
    assert largest == sorted(largest)
    assert spread[-1] / spread[0] == pytest.approx(16)  # both projections grew fourfold


def test_qk_norm_bounds_the_logits_whatever_the_projections_drift_to():
    largest, spread = sharpness(qk_norm=True)
    assert max(spread) <= 2 * 32**0.5  # at gain 1 a logit lies between -sqrt(H) and sqrt(H)
    assert max(largest) - min(largest) < 1e-3 and max(largest) < 0.25


def test_softcap_by_hand():
    capped = REFERENCE.softcap(torch.tensor([10.0, 200.0]).double(), 50.0)
    assert [f"{value:.2f}" for value in capped] == ["9.87", "49.97"]
    gemma = preset("gemma2-2b")
    assert (gemma.attn_softcap, gemma.final_softcap) == (50.0, 30.0)


def text(seed, B=8, T=16, V=32):
    """Tokens in which each one follows from the one before, up to one of three choices."""
    generator = torch.Generator().manual_seed(seed)
    tokens = [torch.randint(0, V, (B,), generator=generator)]
    for _ in range(T - 1):
        tokens.append((3 * tokens[-1] + 1 + torch.randint(0, 3, (B,), generator=generator)) % V)
    return torch.stack(tokens, dim=1)  # (B, T)


def log_z_and_loss(coefficient, steps=240):
    """Mean log Z and the loss of a tiny model (L = 2, D = 32, V = 32) at the end of a short training."""
    torch.manual_seed(0)
    model = LanguageModel(ModelConfig(L=2, V=32, D=32, N=4, K=2, ffn_dim=64), REFERENCE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.0)
    for step in range(steps):
        tokens = text(step)
        logits = model(tokens)
        loss = REFERENCE.causal_lm_loss(logits, tokens)
        optimizer.zero_grad()
        (loss + REFERENCE.z_loss(logits, coefficient)).backward()
        optimizer.step()
    return float(logits.detach().logsumexp(dim=-1).mean()), float(loss.detach())


def test_log_z_drifts_away_unless_a_z_loss_holds_it():
    """A coefficient of 0.01, as the run is short: 1e-4 needs thousands of steps. The loss costs nothing by it."""
    free, free_loss = log_z_and_loss(0.0)
    held, held_loss = log_z_and_loss(1e-2)
    assert free > 7 > math.log(32) + 3  # it started near log V = 3.47 and went away from 0
    assert abs(held) < 1.5
    assert held_loss == pytest.approx(free_loss, abs=0.1) and free_loss < 1.4


# Windows and vocabularies -----------------------------------------------------------------------


def test_reach_through_windowed_layers():
    mistral, gemma = preset("mistral-7b"), preset("gemma2-2b")
    assert {mistral.window_of(layer) for layer in range(mistral.L)} == {4_096}
    assert [gemma.window_of(layer) for layer in range(gemma.L)] == [4_096, None] * 13
    assert mistral.L * (4_096 - 1) + 1 == 131_041
    assert mistral.L * 4_096 == 131_072  # the lesson's l * w


def test_vocabularies():
    V = {name: preset(name).V for name in ("gpt2-small", "llama2-7b", "llama3-8b")}
    assert V == {"gpt2-small": 50_257, "llama2-7b": 32_000, "llama3-8b": 128_256}
    assert f"{V['llama3-8b'] / V['gpt2-small']:.2f}" == "2.55"
    assert f"{V['llama3-8b'] / V['llama2-7b']:.3f}" == "4.008"


def test_signals_of_masked_and_causal_training():
    assert round(0.15 * 512) == 77
    assert f"{1 / 0.15:.2f}" == "6.67"
    tokens = torch.arange(512)[None]
    noise = torch.linspace(0, 1, 513)[None, :512]
    _, targets = REFERENCE.masked_lm_corruption(tokens, noise, tokens, 999)
    assert int((targets != -100).sum()) == 77
    assert (tokens[:, 1:].numel(), tokens.numel()) == (
        511,
        512,
    )  # nothing follows the last: T - 1, where the lesson says T
