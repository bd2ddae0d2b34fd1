"""Is it fast for the right reason? What an implementation takes on a device, each time against a peer.

The same code measures large sizes on a GPU and small ones on a CPU, where it is only known to work.
B batch, T query length, S key length, V vocabulary, D width, F FFN width, N query heads, K key/value
heads, H head size, G = N / K.
"""

import contextlib
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from nanolm.asking.clock import Clock
from nanolm.cache import Cache, LayerCache
from nanolm.config import ModelConfig
from nanolm.errors import ContractError
from nanolm.model import LanguageModel
from nanolm.model.given_parts import GeluFFN

BF16, FP32 = torch.bfloat16, torch.float32
EPS = 1e-5
FUSED = partial(torch.nn.functional.scaled_dot_product_attention, is_causal=True, enable_gqa=True)


@dataclass(frozen=True)
class Sizes:
    """How large the work is. `norm_rows` tokens outgrow every cache of the device."""

    D: int
    N: int
    K: int
    T: int
    norm_rows: int
    S: int  # cached tokens of a decode step
    decode_B: int
    V: int = 1_000


LARGE = Sizes(D=4_096, N=32, K=8, T=8_192, norm_rows=65_536, S=16_384, decode_B=16)
SMALL = Sizes(D=64, N=8, K=2, T=32, norm_rows=64, S=48, decode_B=2)


class Bench:
    """One implementation on one device, in the sizes given."""

    def __init__(self, implementation, device, sizes, clock=None):
        self.impl, self.device, self.sizes = implementation, torch.device(device), sizes
        self.clock = clock or Clock(self.device)
        self.cfg = ModelConfig(L=2, V=sizes.V, D=sizes.D, N=sizes.N, K=sizes.K, ffn_dim=self.impl.ffn_dim(sizes.D))

    def built(self, make, dtype=BF16):
        """A module on the device, from its own random start."""
        with self.device:
            return make().to(self.device, dtype).eval()

    def random(self, *shape, dtype=BF16):
        return torch.randn(shape, device=self.device, dtype=dtype)

    def tables(self, positions):
        """cos and sin of these positions."""
        return self.impl.rope_cos_sin(positions.to(self.device), self.impl.rope_frequencies(self.cfg.H).to(self.device))


def rmsnorm_against_a_copy(bench):
    """A norm reads and writes each number once, as a copy does."""
    norm, x = _norm(bench)
    target, moved = torch.empty_like(x), 2 * x.numel() * x.element_size()
    return bench.clock.row(
        "rmsnorm_against_a_copy", ("RMSNorm", lambda: norm(x)), ("a device copy", lambda: target.copy_(x)),
        "1 at best, about 0.1 where every operation is a kernel of its own",
        note=lambda seconds: f"RMSNorm moves {moved / seconds / 1e9:,.0f} GB/s",
    )  # fmt: skip


def rmsnorm_against_torch(bench):
    norm, x = _norm(bench)
    return bench.clock.row(
        "rmsnorm_against_torch", ("RMSNorm", lambda: norm(x)),
        ("torch's rms_norm", lambda: torch.nn.functional.rms_norm(x, norm.weight.shape, norm.weight, EPS)),
        "1 at best, less where every operation is a kernel of its own",
    )  # fmt: skip


def rmsnorm_against_layernorm(bench):
    """The lesson says 10 to 15% less. Both written out, with one kernel for each operation."""
    norm, x = _norm(bench)
    gain, shift = norm.weight, torch.zeros_like(norm.weight)

    def layernorm():
        wide = x.to(FP32)
        centred = wide - wide.mean(dim=-1, keepdim=True)
        variance = centred.var(dim=-1, keepdim=True, correction=0)
        return (centred * torch.rsqrt(variance + EPS) * gain + shift).to(x.dtype)

    return bench.clock.row(
        "rmsnorm_against_layernorm", ("RMSNorm", lambda: norm(x)), ("LayerNorm written out", layernorm),
        "1.1 to 1.2 by the lesson",
    )  # fmt: skip


def torch_rmsnorm_against_layernorm(bench):
    """The same question to torch's fused kernels."""
    norm, x = _norm(bench)
    gain, shift, shape = norm.weight, torch.zeros_like(norm.weight), norm.weight.shape
    return bench.clock.row(
        "torch_rmsnorm_and_layernorm", ("torch's rms_norm", lambda: torch.nn.functional.rms_norm(x, shape, gain, EPS)),
        ("torch's layer_norm", lambda: torch.nn.functional.layer_norm(x, shape, gain, shift, EPS)),
        "1.1 to 1.2 by the lesson",
    )  # fmt: skip


def swiglu_against_gelu(bench):
    """Equal parameters: three matrices at 8D/3, two at 4D."""
    D, x = bench.sizes.D, bench.random(1, bench.sizes.T, bench.sizes.D)
    swiglu = bench.built(lambda: bench.impl.SwiGLU(D, bench.cfg.F))
    gelu = bench.built(lambda: GeluFFN(D, 4 * D, bias=False))
    return bench.clock.row(
        "swiglu_against_gelu", ("SwiGLU at 8D/3", lambda: swiglu(x)), ("GELU at 4D", lambda: gelu(x)), "about 1"
    )


def attention_against_fused(bench):
    return bench.clock.row(
        "attention_against_fused", ("attention", _attention(bench)),
        ("as much work around torch's fused call", _peer(bench)), "about 1",
    )  # fmt: skip


def attention_against_written_out(bench):
    """torch's math path writes the scores out, T x T for every query head."""
    written_out = _peer(bench)

    def peer():
        with sdpa_kernel(SDPBackend.MATH):
            return written_out()

    return bench.clock.row(
        "attention_against_softmax", ("attention", _attention(bench)),
        ("the same with its scores written out", peer), "3 and more", gate=2.0,
    )  # fmt: skip


def decode_flat_in_N(bench):
    """At fixed K the cache is what a step reads, however many query heads there are."""
    few = _decode_step(bench, N=bench.sizes.K, K=bench.sizes.K)
    many = _decode_step(bench, N=bench.sizes.N, K=bench.sizes.K)
    return bench.clock.row(
        "decode_flat_in_N", (f"N = K = {bench.sizes.K}", few), (f"N = {bench.sizes.N}, the same K", many), "about 1"
    )


def decode_falls_with_G(bench):
    """At fixed N a G times smaller cache is read G times faster."""
    N, G = bench.sizes.N, 8
    shared, own = _decode_step(bench, N=N, K=N // G), _decode_step(bench, N=N, K=N)
    return bench.clock.row("decode_falls_with_G", (f"G = {G}", shared), ("G = 1", own), f"towards {G}", gate=2.0)


def decode_against_recomputation(bench):
    model = bench.built(lambda: LanguageModel(bench.cfg, bench.impl))
    tokens = torch.randint(0, bench.sizes.V, (1, bench.sizes.T), device=bench.device)
    cache = Cache(bench.cfg)
    with torch.no_grad():
        model(tokens[:, :-1], cache)
    if cache.length == 0:
        raise ContractError("the attention leaves the cache empty, so there is no cached step to time.")
    held = [(layer.k, layer.v, layer.length) for layer in cache.layers]

    def step():
        for layer, (k, v, length) in zip(cache.layers, held, strict=True):
            layer.k, layer.v, layer.length = k, v, length
        return model(tokens[:, -1:], cache)

    return bench.clock.row(
        "decode_against_recomputing", ("a cached step", step), ("the whole text again", lambda: model(tokens)),
        "far above 2", gate=2.0,
    )  # fmt: skip


def block_in_bf16(bench):
    T = bench.sizes.T // 2
    x, tables = bench.random(1, T, bench.sizes.D), bench.tables(torch.arange(T))
    narrow = bench.built(lambda: bench.impl.Block(bench.cfg))
    wide, wide_x = bench.built(lambda: bench.impl.Block(bench.cfg), FP32), x.to(FP32)
    return bench.clock.row(
        "block_in_bf16", ("the block in bf16", lambda: narrow(x, *tables)),
        ("the block in fp32", lambda: wide(wide_x, *tables)), "5 and more", gate=2.0,
    )  # fmt: skip


MEASUREMENTS = (
    rmsnorm_against_a_copy, rmsnorm_against_torch, rmsnorm_against_layernorm, torch_rmsnorm_against_layernorm,
    swiglu_against_gelu, attention_against_fused, attention_against_written_out, decode_flat_in_N,
    decode_falls_with_G, decode_against_recomputation, block_in_bf16,
)  # fmt: skip


def forward_without_waiting(bench):
    """A forward of the whole model; on a GPU torch raises where the program waits for the device."""
    model = bench.built(lambda: LanguageModel(bench.cfg, bench.impl))
    tokens = torch.randint(0, bench.sizes.V, (1, bench.sizes.T), device=bench.device)
    with torch.no_grad():
        model(tokens)  # what is made once and kept
        with _waiting_is_an_error(bench.device):
            return model(tokens)


@contextlib.contextmanager
def _waiting_is_an_error(device):
    if device.type != "cuda":
        yield
        return
    torch.cuda.synchronize(device)
    before = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode(before)


def _norm(bench):
    D = bench.sizes.D
    return bench.built(lambda: bench.impl.RMSNorm(D, EPS)), bench.random(bench.sizes.norm_rows, D)


def _attention(bench):
    T = bench.sizes.T
    attention = bench.built(lambda: bench.impl.GroupedQueryAttention(bench.cfg))
    x, tables = bench.random(1, T, bench.sizes.D), bench.tables(torch.arange(T))
    return lambda: attention(x, *tables)


def _peer(bench):
    """As much work as attention has, on heads made beforehand: four projections, two turns, torch's own call."""
    cfg, T, D = bench.cfg, bench.sizes.T, bench.sizes.D
    x, tables = bench.random(1, T, D), bench.tables(torch.arange(T))
    weights = [bench.random(D, heads * cfg.H) for heads in (cfg.N, cfg.K, cfg.K, cfg.N)]
    q, k, v = (bench.random(1, heads, T, cfg.H) for heads in (cfg.N, cfg.K, cfg.K))

    def work():
        for weight in weights:
            x @ weight
        turned = [bench.impl.apply_rope(heads, *tables) for heads in (q, k)]
        return FUSED(*turned, v)

    return work


def _decode_step(bench, N, K):
    """One new token for each row of the batch after S cached ones, in an attention of these heads."""
    sizes, cfg = bench.sizes, replace(bench.cfg, N=N, K=K)
    attention = bench.built(lambda: bench.impl.GroupedQueryAttention(cfg))
    k, v = (bench.random(sizes.decode_B, K, sizes.S, cfg.H) for _ in range(2))
    given = bench.random(sizes.decode_B, 1, sizes.D), *bench.tables(torch.tensor([sizes.S]))

    def step():
        cache = LayerCache()
        cache.k, cache.v, cache.length = k, v, sizes.S
        attention(*given, cache)
        if cache.length == sizes.S:
            raise ContractError("the attention leaves the cache as it is, so there is no cached step to time.")

    return step
