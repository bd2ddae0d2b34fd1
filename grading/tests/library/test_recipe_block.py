"""The given recipes: where the norms stand, told apart by behaviour; the given FFNs and norms; mixtures.

B batch, T query length, D width, F FFN width.
"""

import pytest
import torch

from nanolm import impl
from nanolm.cache import Cache, LayerCache
from nanolm.config import preset
from nanolm.model import LanguageModel
from nanolm.model.given_parts import GatedFFN, GeluFFN, RecipeBlock, make_block, make_ffn, make_norm

REFERENCE = impl.load("reference")
B, T = 2, 5
TINY = preset("tiny").but(norm_eps=1e-12)  # a norm's output then has RMS 1 exactly
PRE = TINY.but(ffn="geglu")  # pre-norm by a RecipeBlock: with SwiGLU the implementation's own Block would come
POST = PRE.but(norm_position="post")
SANDWICH = PRE.but(norm_position="sandwich")
BRANCHES = ("attn.w_o", "ffn.w_down")


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def block(cfg, outputs=1.0):
    """A block in fp64, every matrix random, every gain 1; the branches' output projections times `outputs`."""
    made = make_block(cfg, 0, REFERENCE).double()
    for seed, (name, parameter) in enumerate(made.named_parameters()):
        if parameter.dim() > 1:
            scale = outputs if name.removesuffix(".weight") in (*BRANCHES, "ffn.w_out") else 1.0
            parameter.data = 0.35 * scale * normal(*parameter.shape, seed=seed)
    return made


def gain(made, name, value):
    made.get_parameter(f"{name}.weight").data.fill_(value)
    return made


def turn(cfg=TINY, T=T, start=0):
    frequencies = REFERENCE.rope_frequencies(cfg.H, cfg.rope_theta)
    return REFERENCE.rope_cos_sin(torch.arange(start, start + T), frequencies)


def run(made, x):
    return made(x, *turn(T=x.shape[1]))


def rms(x):
    return x.pow(2).mean(dim=-1).sqrt()  # (B, T)


X = 3 * normal(B, T, TINY.D, seed=50)


# Where the norms stand --------------------------------------------------------------------------


@pytest.mark.parametrize("norm", ["rmsnorm", "layernorm"])
def test_post_norm_leaves_a_stream_of_the_gains_size(norm):
    made = block(POST.but(norm=norm))
    assert torch.allclose(rms(run(made, X)), torch.ones(B, T).double())
    assert torch.allclose(rms(run(gain(made, "ffn_norm", 2.5), X)), torch.full((B, T), 2.5).double())


def test_post_norm_breaks_the_identity_path():
    silent = block(POST, outputs=0.0)
    y = run(silent, X)
    assert torch.allclose(y, X / rms(X)[..., None])  # normed twice, not left alone
    assert torch.allclose(run(silent, 10 * X), y)  # what the size of the stream said is lost


def test_post_norm_norms_after_each_sum():
    made = block(POST)
    middle = made.attn_norm(X + made.attn(X, *turn()))
    assert torch.allclose(run(made, X), made.ffn_norm(middle + made.ffn(middle)))


@pytest.mark.parametrize("ffn", ["swiglu", "geglu", "gelu"])  # with swiglu it is the implementation's own Block
@pytest.mark.parametrize("norm", ["rmsnorm", "layernorm"])
def test_pre_norm_with_silent_branches_is_the_identity(norm, ffn):
    assert torch.equal(run(block(TINY.but(norm=norm, ffn=ffn), outputs=0.0), X), X)


def test_pre_norm_adds_a_branch_of_the_normed_stream():
    made = block(PRE)
    middle = X + made.attn(made.attn_norm(X), *turn())
    assert torch.allclose(run(made, X), middle + made.ffn(made.ffn_norm(middle)))


def test_pre_norm_adds_as_much_as_its_projections_say():
    for silent in BRANCHES:
        one, ten = (block(PRE, outputs=outputs) for outputs in (1.0, 10.0))
        for made in (one, ten):
            made.get_parameter(f"{silent}.weight").data.zero_()
        assert torch.allclose(run(ten, X) - X, 10 * (run(one, X) - X))


@pytest.mark.parametrize("outputs", [0.1, 1.0, 100.0])
@pytest.mark.parametrize(("own", "other"), [("attn", "ffn"), ("ffn", "attn")])
def test_sandwich_adds_branches_of_the_gains_size(own, other, outputs):
    made = block(SANDWICH, outputs=outputs)
    gain(made, f"{other}_out_norm", 0.0)  # the other branch adds nothing
    for size in (1.0, 0.3):
        gain(made, f"{own}_out_norm", size)
        added = run(made, X) - X
        assert torch.allclose(rms(added), torch.full((B, T), size).double())


def test_sandwich_leaves_the_stream_itself_raw():
    made = block(SANDWICH)
    for name in ("attn_out_norm", "ffn_out_norm"):
        gain(made, name, 0.0)
    assert torch.equal(run(made, X), X)


def test_sandwich_reads_a_normed_copy():
    made = gain(block(SANDWICH), "ffn_out_norm", 0.0)
    made.attn_out_norm = torch.nn.Identity()  # an output norm would hide the size of what comes in
    assert torch.allclose(run(made, 10 * X) - 10 * X, run(made, X) - X)


GRADIENT_AT_INPUT = {"pre": True, "post": False, "sandwich": True}


@pytest.mark.parametrize("position", GRADIENT_AT_INPUT)
def test_the_gradient_keeps_its_identity_path_unless_post_norm(position):
    made = block(PRE.but(norm_position=position), outputs=0.0)
    x, upstream = X.clone().requires_grad_(), normal(B, T, TINY.D, seed=51)
    run(made, x).backward(upstream)
    assert torch.allclose(x.grad, upstream) == GRADIENT_AT_INPUT[position]


@pytest.mark.parametrize("position", ["pre", "post", "sandwich"])
@pytest.mark.parametrize("ffn", ["geglu", "gelu"])
def test_every_parameter_gets_a_gradient(position, ffn):
    made = block(TINY.but(norm_position=position, ffn=ffn, norm="layernorm", bias=True, qk_norm=True))
    run(made, X).backward(normal(B, T, TINY.D, seed=52))
    assert [name for name, p in made.named_parameters() if p.grad is None or not p.grad.abs().sum() > 1e-9] == []


# Names ------------------------------------------------------------------------------------------

NORMS = ["attn_norm.weight", "ffn_norm.weight"]
ATTENTION = [f"attn.w_{name}.weight" for name in "qkvo"]
GATED = [f"ffn.w_{name}.weight" for name in ("gate", "up", "down")]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"ffn": "geglu"}, [*NORMS, *ATTENTION, *GATED]),
        ({"norm_position": "post"}, [*NORMS, *ATTENTION, *GATED]),
        (
            {"norm_position": "sandwich"},
            [*NORMS, "attn_out_norm.weight", "ffn_out_norm.weight", *ATTENTION, *GATED],
        ),
        ({"ffn": "gelu"}, [*NORMS, *ATTENTION, "ffn.w_in.weight", "ffn.w_out.weight"]),
        ({"norm": "layernorm"}, [*NORMS, *ATTENTION, *GATED]),
        (
            {"norm": "layernorm", "ffn": "gelu", "bias": True},
            [
                name.replace("weight", kind)
                for name in [*NORMS, *ATTENTION, "ffn.w_in.weight", "ffn.w_out.weight"]
                for kind in ("weight", "bias")
            ],
        ),
    ],
)
def test_state_dict_names(changes, expected):
    assert sorted(make_block(TINY.but(**changes), 0, REFERENCE).state_dict()) == sorted(expected)


def test_a_fresh_norm_has_gain_one_and_bias_zero():
    made = make_norm(TINY.but(norm="layernorm", bias=True), REFERENCE)
    assert torch.equal(made.weight, torch.ones(36)) and torch.equal(made.bias, torch.zeros(36))
    assert type(make_norm(TINY, REFERENCE)) is REFERENCE.RMSNorm


@pytest.mark.parametrize("norm", ["rmsnorm", "layernorm"])
def test_norms_take_the_configured_eps(norm):
    made = make_norm(TINY.but(norm=norm, norm_eps=0.3), REFERENCE).double()
    x = normal(4, 36)
    centred = x - x.mean(dim=-1, keepdim=True) if norm == "layernorm" else x
    assert torch.allclose(made(x), centred / (centred.pow(2).mean(dim=-1, keepdim=True) + 0.3).sqrt())


# The given FFNs ---------------------------------------------------------------------------------


def tanh_gelu(x):
    return 0.5 * x * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (x + 0.044715 * x**3)))


def test_geglu_is_swiglu_with_tanh_gelu_as_its_gate():
    ffn, x = GatedFFN(36, 40).double(), 3 * normal(4, 36)
    gate, up = x @ ffn.w_gate.weight.T, x @ ffn.w_up.weight.T
    expected = (tanh_gelu(gate) * up) @ ffn.w_down.weight.T
    assert torch.allclose(ffn(x), expected)
    assert torch.allclose(tanh_gelu(gate), torch.nn.functional.gelu(gate, approximate="tanh"))
    exact = (torch.nn.functional.gelu(gate) * up) @ ffn.w_down.weight.T
    assert (ffn(x) - exact).abs().max() > 1e-5  # the inputs tell tanh from erf
    twin = REFERENCE.SwiGLU(36, 40).double()
    twin.load_state_dict(ffn.state_dict())  # the same names
    assert (ffn(x) - twin(x)).abs().max() > 1e-2


def test_gelu_ffn_is_two_matrices_with_tanh_gelu_between():
    ffn, x = GeluFFN(36, 40, bias=True).double(), 3 * normal(4, 36)
    expected = tanh_gelu(x @ ffn.w_in.weight.T + ffn.w_in.bias) @ ffn.w_out.weight.T + ffn.w_out.bias
    assert torch.allclose(ffn(x), expected)
    assert [name for name, _ in GeluFFN(36, 40, bias=False).named_parameters()] == ["w_in.weight", "w_out.weight"]


def test_the_configuration_chooses_the_ffn():
    kinds = {kind: type(make_ffn(TINY.but(ffn=kind), REFERENCE)) for kind in ("swiglu", "geglu", "gelu")}
    assert kinds == {"swiglu": REFERENCE.SwiGLU, "geglu": GatedFFN, "gelu": GeluFFN}
    assert GatedFFN(36, 40).w_down.weight.shape == (36, 40)


# Mixtures and the whole model -------------------------------------------------------------------


@pytest.mark.parametrize("position", ["pre", "post", "sandwich"])
@pytest.mark.parametrize("norm", ["rmsnorm", "layernorm"])
@pytest.mark.parametrize("ffn", ["swiglu", "geglu", "gelu"])
@pytest.mark.parametrize("positions", ["rope", "learned"])
def test_every_mixture_runs_whole_and_in_chunks(position, norm, ffn, positions):
    cfg = TINY.but(norm_position=position, norm=norm, ffn=ffn, positions=positions, windows=(3, None))
    torch.manual_seed(0)
    model, tokens = LanguageModel(cfg, REFERENCE).double(), torch.arange(2 * 9).view(2, 9) % cfg.V
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape) * 0.35)
        whole = model(tokens)
        cache = Cache(cfg)
        chunks = torch.cat([model(chunk, cache) for chunk in tokens.split((4, 1, 1, 3), dim=1)], dim=1)
        moved = model(tokens.flip(0))
    assert whole.isfinite().all() and torch.allclose(chunks, whole, atol=1e-5)
    assert (moved - whole).abs().max() > 0.1


@pytest.mark.parametrize(
    "changes",
    [
        {"norm": "layernorm"},
        {"norm_position": "post"},
        {"norm_position": "sandwich"},
        {"ffn": "gelu"},
        {"ffn": "geglu"},
    ],
)
def test_only_the_modern_recipe_takes_the_implementations_own_block(changes):
    assert type(make_block(TINY, 0, REFERENCE)) is REFERENCE.Block
    assert type(make_block(TINY.but(**changes), 0, REFERENCE)) is RecipeBlock


def test_each_layer_has_its_own_window():
    cfg = SANDWICH.but(windows=(2, None))
    local, everywhere = (make_block(cfg, layer, REFERENCE).double() for layer in (0, 1))
    whole = block(SANDWICH)
    for made in (local, everywhere):
        made.load_state_dict(whole.state_dict())
    assert torch.equal(run(everywhere, X), run(whole, X))
    assert torch.allclose(run(local, X)[:, :2], run(whole, X)[:, :2])
    assert (run(local, X) - run(whole, X))[:, 2:].abs().max() > 0.01


def test_a_block_hands_the_cache_to_its_attention():
    made, cache = block(SANDWICH), LayerCache()
    whole = run(made, X)
    chunks = [made(X[:, a:b], *turn(T=b - a, start=a), cache) for a, b in ((0, 3), (3, 5))]
    assert torch.allclose(torch.cat(chunks, dim=1), whole) and cache.length == T


def test_learned_positions_have_no_row_past_the_table():
    """GPT-2's table has 1,024 rows: token 1,025, at position 1,024, has none."""
    cfg = TINY.but(positions="learned", T_max=1_024, L=1)
    model = LanguageModel(cfg, REFERENCE)
    assert model(torch.zeros(1, 1_024, dtype=torch.long)).shape == (1, 1_024, cfg.V)
    with pytest.raises(ValueError, match="position 1024 has no row in a learned table of T_max = 1024: shorten the"):
        model(torch.zeros(1, 1_025, dtype=torch.long))
    rope = LanguageModel(cfg.but(positions="rope"), REFERENCE)
    assert rope(torch.zeros(1, 1_025, dtype=torch.long)).isfinite().all()


def test_learned_positions_take_the_place_of_the_turn():
    cfg = TINY.but(positions="learned", L=1)
    model, tokens = LanguageModel(cfg, REFERENCE), torch.tensor([[3, 1, 4, 1]])
    assert model.positions.weight.shape == (cfg.T_max, cfg.D)
    with torch.no_grad():
        model.positions.weight.normal_()
        here, there = (model(tokens, positions=torch.arange(4) + first) for first in (0, 1))
        assert (here - there).abs().max() > 1e-3
        model.positions.weight.zero_()
        flat = model(tokens, positions=torch.tensor([0, 1, 2, 3]))
        assert torch.equal(model(tokens, positions=torch.tensor([9, 2, 7, 5])), flat)
