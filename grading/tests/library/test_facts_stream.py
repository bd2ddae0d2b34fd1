"""Facts of the lessons on norms, the residual stream and the FFN, measured on our code.

B batch, T query length, L layers, V vocabulary, D width, F FFN width. Experiments run on random weights
with fixed seeds and say their setting.
"""

import math

import pytest
import torch

from nanolm import impl
from nanolm.config import ModelConfig
from nanolm.model import LanguageModel
from nanolm.model.given_parts import GeluFFN

REFERENCE = impl.load("reference")
SEEDS = (0, 1, 2)


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def norm_of(D):
    return REFERENCE.RMSNorm(D, eps=1e-12).double()


# Norms ------------------------------------------------------------------------------------------


def test_three_and_four():
    x = torch.tensor([3.0, 4.0]).double()
    rms = x.pow(2).mean().sqrt()
    assert f"{rms:.2f}" == "3.54"
    assert [f"{value:.2f}" for value in norm_of(2)(x)] == ["0.85", "1.13"]
    assert torch.allclose(norm_of(2)(x), x / rms)
    assert torch.allclose(torch.nn.functional.layer_norm(x, (2,), eps=0.0), torch.tensor([-1.0, 1.0]).double())


def test_rmsnorm_has_half_the_parameters_of_layernorm():
    assert sum(p.numel() for p in REFERENCE.RMSNorm(48).parameters()) == 48
    assert sum(p.numel() for p in torch.nn.LayerNorm(48).parameters()) == 2 * 48


class CountMeans(torch.utils._python_dispatch.TorchDispatchMode):
    count = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.count += function.overloadpacket in (torch.ops.aten.mean, torch.ops.aten.sum)
        return function(*args, **(kwargs or {}))


def layernorm_by_hand(x):
    centred = x - x.mean(dim=-1, keepdim=True)
    return centred / centred.pow(2).mean(dim=-1, keepdim=True).sqrt()


def test_rmsnorm_collapses_the_vector_once_layernorm_twice():
    x = normal(3, 8)
    with CountMeans() as rmsnorm:
        norm_of(8)(x)
    with CountMeans() as layernorm:
        by_hand = layernorm_by_hand(x)
    assert (rmsnorm.count, layernorm.count) == (1, 2)
    assert torch.allclose(by_hand, torch.nn.functional.layer_norm(x, (8,), eps=0.0))


@pytest.mark.parametrize("D", [3, 64])
def test_outputs_lie_on_the_sphere_and_layernorms_in_the_hyperplane(D):
    x = normal(100, D) + 2
    ones = torch.ones(D).double()
    rms, layer = norm_of(D)(x), torch.nn.functional.layer_norm(x, (D,), eps=1e-12)
    for y in (rms, layer):
        assert torch.allclose(y.norm(dim=-1), torch.full((100,), math.sqrt(D)).double())
    assert (layer @ ones).abs().max() < 1e-6
    assert (rms @ ones).abs().min() > 0.01


@pytest.mark.parametrize("D", [3, 64])
def test_layernorm_is_a_projection_and_then_rmsnorm(D):
    projector = torch.eye(D).double() - torch.ones(D, D).double() / D  # onto the hyperplane orthogonal to ones
    x = normal(50, D) + 2
    assert torch.allclose(projector @ projector, projector)
    assert torch.allclose(norm_of(D)(x @ projector), torch.nn.functional.layer_norm(x, (D,), eps=1e-12))


def test_squared_norms_concentrate_about_D():
    """At unit variance ||x||^2 has mean D and variance 2 D: the relative spread is sqrt(2 / D)."""
    spreads = []
    for D in (16, 256, 4096):
        ratio = normal(2000, D, seed=D).pow(2).sum(dim=-1) / D
        assert ratio.mean() == pytest.approx(1, abs=4 * math.sqrt(2 / D / 2000))
        assert ratio.std() == pytest.approx(math.sqrt(2 / D), rel=0.05)
        for off in (0.05, 0.1, 0.3):  # Chebyshev holds, and says nothing where its bound is above 1
            assert ((ratio - 1).abs() >= off).double().mean() <= 2 / (D * off**2)
        assert (ratio >= 1.5).double().mean() <= 1 / 1.5  # Markov
        spreads.append(float(ratio.std()))
    assert spreads[0] > 3 * spreads[1] > 9 * spreads[2]


# The stream by depth ----------------------------------------------------------------------------


def deep(L, position, std, seed):
    """The language model of D = 128 with every matrix normal of this standard deviation, and tokens (4, 32)."""
    cfg = ModelConfig(L=L, V=256, D=128, N=4, ffn_dim=344, norm_position=position)
    torch.manual_seed(seed)
    model = LanguageModel(cfg, REFERENCE)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=std)
    return model, torch.randint(0, cfg.V, (4, 32))


@torch.no_grad()
def stream(position, seed, std=128**-0.5, L=32):
    """The stream before the first block and after each of the L blocks."""
    model, tokens = deep(L, position, std, seed)
    seen = []
    model.blocks[0].register_forward_pre_hook(lambda block, inputs: seen.append(inputs[0]))
    for block in model.blocks:
        block.register_forward_hook(lambda block, inputs, output: seen.append(output))
    model(tokens)
    return seen


def mean_squares(seen):
    return torch.tensor([float(x.pow(2).mean()) for x in seen])


@pytest.mark.parametrize("seed", SEEDS)
def test_pre_norm_stream_grows_with_depth_about_linearly(seed):
    sizes = mean_squares(stream("pre", seed))
    assert (sizes[1:] > sizes[:-1]).all()
    first, second = sizes[16] - sizes[0], sizes[32] - sizes[16]
    assert 20 < first < 30  # 1.5 a layer
    assert second / first == pytest.approx(1, abs=0.15)  # as much again, not twice as much


@pytest.mark.parametrize("seed", SEEDS)
def test_pre_norm_later_layers_change_the_stream_less(seed):
    seen = stream("pre", seed)
    changes = [float((after - before).norm() / before.norm()) for before, after in zip(seen, seen[1:], strict=False)]
    assert sum(changes[28:]) / 4 < 0.21 < 0.5 < sum(changes[2:6]) / 4


def test_post_norm_stream_keeps_its_size():
    assert torch.allclose(mean_squares(stream("post", 0))[1:], torch.ones(32), atol=1e-3)


def test_the_final_norm_takes_the_growth_off():
    last = stream("pre", 0)[-1]
    before, after = mean_squares([last, REFERENCE.RMSNorm(128)(last).detach()]).tolist()
    assert before == pytest.approx(47, abs=5) and after == pytest.approx(1, abs=1e-3)


def test_variance_grows_linearly_only_where_branches_are_uncorrelated():
    D, L = 4096, 32
    apart = normal(L, D).cumsum(dim=0)
    alike = normal(1, D).expand(L, D).cumsum(dim=0)
    assert apart[-1].pow(2).mean() == pytest.approx(L, rel=0.1)
    assert alike[-1].pow(2).mean() == pytest.approx(L**2, rel=0.1)


def test_the_pre_norm_jacobian_is_the_identity_plus_the_branchs():
    block = REFERENCE.Block(ModelConfig(L=1, V=8, D=12, N=2, ffn_dim=16)).double()
    torch.nn.init.zeros_(block.attn.w_o.weight)  # one branch at a time
    cos, sin = torch.ones(1, 3).double(), torch.zeros(1, 3).double()
    x = normal(12)
    whole = torch.autograd.functional.jacobian(lambda x: block(x.view(1, 1, 12), cos, sin).flatten(), x)
    branch = torch.autograd.functional.jacobian(lambda x: block.ffn(block.ffn_norm(x)), x)
    assert torch.allclose(whole, torch.eye(12).double() + branch) and branch.norm() > 0.1


# Gradients at initialisation --------------------------------------------------------------------


def test_nine_tenths_compound():
    assert f"{0.9**32:.3f}" == "0.034"


def top_over_bottom(L, position, std, seed):
    """Norm of the loss's gradient in a layer's weights: mean of the top four layers over that of the bottom four."""
    model, tokens = deep(L, position, std, seed)
    REFERENCE.causal_lm_loss(model(tokens), tokens).backward()
    norms = torch.stack([torch.stack([p.grad.norm() for p in block.parameters()]).norm() for block in model.blocks])
    return float(norms[-4:].mean() / norms[:4].mean())


@pytest.mark.parametrize("seed", SEEDS)
def test_pre_norm_gradients_are_larger_at_the_bottom(seed):
    """At std 0.02, L = 32: 0.23 to 0.25 in our code. "Kept" is not the whole story."""
    assert 0.2 < top_over_bottom(32, "pre", 0.02, seed) < 0.31


@pytest.mark.parametrize("seed", SEEDS)
def test_post_norm_gradients_compound_with_depth(seed):
    """Weak branches (std 0.02) leave them equal at any depth; at gain 1 (std 1 / sqrt(D)) every layer multiplies.

    In our model each factor is above 1 on the way down, so the bottom is larger, 6 times at L = 12 and
    far more than 100 times at L = 32; pre-norm grows no faster than L.
    """
    for L in (12, 32):
        assert top_over_bottom(L, "post", 0.02, seed) == pytest.approx(1, abs=0.08)
    gain_one = 128**-0.5
    assert 0.12 < top_over_bottom(12, "post", gain_one, seed) < 0.25
    assert top_over_bottom(32, "post", gain_one, seed) < 0.01
    assert 0.05 < top_over_bottom(32, "pre", gain_one, seed) < 0.2


# The FFN ----------------------------------------------------------------------------------------


def test_silu_by_hand():
    silu = torch.nn.functional.silu(torch.tensor([2.0, -2.0]).double())
    assert [f"{value:.2f}" for value in silu] == ["1.76", "-0.24"]
    assert torch.allclose(silu, torch.tensor([2.0, -2.0]).double() * torch.sigmoid(torch.tensor([2.0, -2.0]).double()))
    assert [f"{value:.2f}" for value in 3 * silu] == ["5.28", "-0.72"]
    assert [f"{value:.3f}" for value in 3 * silu] == ["5.285", "-0.715"]


def size(module):
    return sum(p.numel() for p in module.parameters())


def test_a_gated_ffn_of_8D_over_3_costs_what_a_plain_one_costs():
    D = 96
    plain = size(GeluFFN(D, 4 * D, bias=False))
    assert plain == 8 * D**2 == size(REFERENCE.SwiGLU(D, 8 * D // 3))
    assert size(REFERENCE.SwiGLU(D, 4 * D)) == 12 * D**2 == 1.5 * plain


def test_widths_of_the_ffn():
    assert f"{8 * 4096 / 3:,.2f}" == "10,922.67"
    assert REFERENCE.ffn_dim(4096) == 11_008
    assert REFERENCE.ffn_dim(4096, 1.3, 1024) == 14_336 == 3.5 * 4096
