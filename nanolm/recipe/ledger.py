"""What a configuration costs: parameters by part, key/value cache, arithmetic and memory traffic.

Parameters are read off the shapes of a model that is built without memory; the cache asks the active
implementation's `kv_cache_bytes_per_token`. `reckon` takes everything down, `table` puts it into text.

L layers, S context (tokens that a query sees), V vocabulary, D width, N query heads, H head size.
"""

from contextlib import contextmanager
from dataclasses import dataclass

from torch import nn
from torch.nn.modules.module import register_module_parameter_registration_hook

from nanolm.config import ModelConfig
from nanolm.errors import ContractError
from nanolm.model import LanguageModel
from nanolm.model.weights import SkipRandomInit

PART_OF = {"attn": "attention", "ffn": "ffn"}  # of a block's children; all others are norms


@dataclass(frozen=True)
class Parameters:
    """Parameters of a built model, in numbers. `attention`, `ffn` and `norms` are those of one layer."""

    embedding: int
    positions: int
    attention: int
    ffn: int
    norms: int
    layers: int  # all of them together
    final_norm: int
    head: int  # 0 where it is tied to the embedding
    multiplied: int  # entries of the matrices that every token is multiplied with; a tied head is one of them

    @property
    def layer(self):
        """One layer."""
        return self.attention + self.ffn + self.norms

    @property
    def total(self):
        """The whole model; a tied head counts once."""
        return self.embedding + self.positions + self.layers + self.final_norm + self.head


@dataclass(frozen=True)
class Flops:
    """Floating point operations of one token's forward; a multiply-add counts as 2."""

    matmuls: int
    attention: int

    @property
    def total(self):
        return self.matmuls + self.attention


@dataclass(frozen=True)
class Traffic:
    """Bytes read from memory to decode one token of one sequence."""

    weights: int
    cache: int

    @property
    def total(self):
        return self.weights + self.cache


@dataclass(frozen=True)
class Ledger:
    """All that `reckon` finds out about one configuration."""

    cfg: ModelConfig
    S: int
    bytes_per_element: int
    parameters: Parameters
    counted: int  # what the implementation's count_parameters says
    cache_per_token: int  # bytes, while the context is shorter than every window
    flops: Flops
    traffic: Traffic

    @property
    def disagreement(self):
        """One sentence where count_parameters is not what the built model holds, else None."""
        built, off = self.parameters.total, abs(self.counted - self.parameters.total)
        if not off:
            return None
        which = "many" if self.counted > built else "few"
        return f"count_parameters says {self.counted:,}, but the built model holds {built:,}: {off:,} too {which}."


def build_without_memory(cfg, impl):
    """The language model of `cfg` around `impl`, its parameters on the meta device: shapes, no data.

    Each parameter goes there when its module takes it. A whole model made under torch.device("meta")
    would take the implementation's tables of cosines along: reading one of their values raises there,
    and a table that is kept for later calls would stay without data.
    """
    with SkipRandomInit(), _parameters_on_meta():
        return LanguageModel(cfg, impl)


@contextmanager
def _parameters_on_meta():
    def move(module, name, parameter):
        return nn.Parameter(parameter.detach().to("meta"), parameter.requires_grad)

    handle = register_module_parameter_registration_hook(move)
    try:
        yield
    finally:
        handle.remove()


def parameters(cfg, impl):
    """The Parameters of the language model of `cfg` around `impl`, as it is built."""
    sizes = dict.fromkeys(("embedding", "positions", "attention", "ffn", "norms", "layers", "final_norm", "head"), 0)
    top = {"embed": "embedding", "positions": "positions", "norm": "final_norm", "head": "head"}
    multiplied = 0
    for name, parameter in build_without_memory(cfg, impl).named_parameters():
        first, layer, child = (*name.split("."), "")[:3]
        if first != "blocks":
            sizes[top[first]] += parameter.numel()
            continue
        sizes["layers"] += parameter.numel()
        if layer == "0":
            sizes[PART_OF.get(child, "norms")] += parameter.numel()
        if parameter.dim() > 1:
            multiplied += parameter.numel()
    return Parameters(**sizes, multiplied=multiplied + (sizes["head"] or sizes["embedding"]))


def cache_bytes(cfg, impl, S, bytes_per_element=2):
    """Bytes of key/value cache of one sequence of S tokens; a layer with a window w keeps at most w of them."""
    one_layer = _asked(impl, "kv_cache_bytes_per_token", cfg.but(L=1, windows=None), bytes_per_element)
    return one_layer * _tokens_in_sight(cfg, S)


def forward_flops(cfg, sizes, S):
    """Flops of the last of S tokens, the one that sees them all; `sizes` are the model's Parameters.

    matmuls: 2 for each entry of each matrix (the embedding is a look-up and costs nothing, the head
    is a matrix, tied or not). attention: in each layer N * H multiply-adds with each token in sight for
    the scores and as many for the values. Norms, activations, RoPE and softmax are left out, as is
    usual. Averaged over a text without windows a token sees half as many, so attention is half of this.
    Source: Chowdhery et al., PaLM (2022), appendix B; Kaplan et al., Scaling Laws (2020), table 1.
    """
    scores_and_values = 2 * 2 * cfg.N * cfg.H * _tokens_in_sight(cfg, S)
    return Flops(matmuls=2 * sizes.multiplied, attention=scores_and_values)


def weights_read(cfg, sizes):
    """Parameters that one decoded token reads: each once, but only its rows of the tables; a head is read whole."""
    tables = sizes.positions + (sizes.embedding if sizes.head else 0)
    rows = cfg.D * ((sizes.positions > 0) + (sizes.head > 0))
    return sizes.total - tables + rows


def reckon(cfg, impl, S=None, bytes_per_element=2):
    """The Ledger of `cfg` with the implementation `impl`; the context S is T_max where it is left out.

    ValueError where a learned position table has no row for token S; ContractError where a count is no number.
    """
    S = cfg.T_max if S is None else S
    check_context(cfg, S)
    counted = _asked(impl, "count_parameters", cfg)
    sizes, cache = parameters(cfg, impl), cache_bytes(cfg, impl, S, bytes_per_element)
    return Ledger(
        cfg=cfg,
        S=S,
        bytes_per_element=bytes_per_element,
        parameters=sizes,
        counted=counted,
        cache_per_token=_asked(impl, "kv_cache_bytes_per_token", cfg, bytes_per_element),
        flops=forward_flops(cfg, sizes, S),
        traffic=Traffic(weights_read(cfg, sizes) * bytes_per_element, cache),
    )


def check_context(cfg, S):
    """ValueError, in one sentence, where no text of S tokens can be given to the model of `cfg`."""
    if S < 1:
        raise ValueError(f"a context of {S} tokens holds nothing: give at least 1.")
    if cfg.positions == "learned" and S > cfg.T_max:
        raise ValueError(
            f"a context of {S:,} tokens is longer than the learned position table of T_max = {cfg.T_max:,}: "
            f"token {cfg.T_max + 1:,} has no row."
        )


def table(ledger):
    """A Ledger as lines of ASCII text."""
    flops, traffic, S = ledger.flops, ledger.traffic, ledger.S
    size, cache = f"{8 * ledger.bytes_per_element} bits a number", _giga(traffic.cache)
    arithmetic = f"{_giga(flops.matmuls)} G matmuls + {_giga(flops.attention)} G attention"
    return [
        *_parameter_lines(ledger.cfg, ledger.parameters),
        "",
        ledger.disagreement or "count_parameters says the same total.",
        "",
        f"One sequence, its token {S:,}, {size}; 1 GB is 10^9 bytes, a multiply-add 2 FLOPs:",
        _cost("KV cache", ledger.cache_per_token, "bytes a token", f"{cache} GB in all{_window_note(ledger.cfg, S)}"),
        _cost("forward", flops.total, "FLOPs", arithmetic),
        _cost("reads", traffic.total, "bytes", f"{_giga(traffic.weights)} GB weights + {cache} GB cache"),
    ]


def _cost(name, number, unit, detail):
    return f"  {name:<10}{number:>18,} {unit:<15}{detail}"


def _parameter_lines(cfg, sizes):
    yield f"{'part':<20}{'parameters':>18}{'of a layer':>13}{'of the model':>15}"
    yield "-" * 66
    layer, model = {"of_layer": sizes.layer}, {"of_model": sizes.total}
    yield _line("embedding", sizes.embedding, **model)
    if sizes.positions:
        yield _line("learned positions", sizes.positions, **model)
    yield _line("layer: attention", sizes.attention, **layer)
    yield _line("layer: FFN", sizes.ffn, **layer)
    yield _line("layer: norms", sizes.norms, **layer)
    yield _line("a layer", sizes.layer, **layer, **model)
    yield _line(f"all {cfg.L} layers", sizes.layers, **model)
    yield _line("final norm", sizes.final_norm, **model)
    yield _line("head" if sizes.head else "head (tied)", sizes.head, **model)
    yield _line("total", sizes.total, **model)


def _line(name, size, of_layer=None, of_model=None):
    shares = ("" if whole is None else f"{size / whole:.1%}" for whole in (of_layer, of_model))
    return f"{name:<20}{size:>18,}{next(shares):>13}{next(shares):>15}".rstrip()


def _giga(number):
    return f"{number / 1e9:.4g}"


def _window_note(cfg, S):
    capped = [layer for layer in range(cfg.L) if cfg.window_of(layer) is not None and cfg.window_of(layer) < S]
    return f", {len(capped)} of {cfg.L} layers capped at their window" if capped else ""


def _tokens_in_sight(cfg, S):
    """Tokens that the last of S sees, itself included, summed over the layers."""
    return sum(min(S, cfg.window_of(layer) or S) for layer in range(cfg.L))


def _asked(impl, name, *args):
    """A count by the implementation, as an int; ContractError where it gives something else."""
    answer = getattr(impl, name)(*args)
    try:
        whole = int(answer)
    except (TypeError, ValueError, OverflowError):
        whole = None
    if whole is None or whole != answer:
        raise ContractError(f"{name} gives {answer!r}, but the contract says a whole number: does it end with return?")
    return whole
