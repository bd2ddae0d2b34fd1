"""The recipe: what each swap from the 2019 block to the modern one moves, in numbers.

    answer = ask(LLAMA_STYLE, BASES["7b-class"], 32_768, impl.load())
    print(show.text(answer))

Toggles become a ModelConfig (`config_of`), the configuration becomes numbers (`ask`), the numbers
become text or a page (`nanolm.recipe.show`); `nanolm.recipe.panel` puts checkboxes in front. Parameters and
cache are counted by the implementation's budget.py, stability is measured (`nanolm.recipe.deep_stack`).

L layers, V vocabulary, D width, F FFN width, N query heads, K key/value heads, G = N / K, H head size.
"""

import functools
import math
from dataclasses import dataclass, replace

from nanolm.asking.subject import Subject
from nanolm.config import PRESETS, ModelConfig
from nanolm.errors import ContractError, NotStarted, StudentError
from nanolm.impl import ImplementationError
from nanolm.recipe import deep_stack, ledger

# The shape of the lessons: 7 billion parameters, and 8,192 tokens long in training.
SHAPE_7B = ModelConfig(L=32, V=128_000, D=4_096, N=32, K=8, ffn_dim=11_008, T_max=8_192, tie_embeddings=True)
BASES = {"7b-class": SHAPE_7B, **PRESETS}


@dataclass(frozen=True)
class Recipe:
    """The toggles, all off at first: the vanilla corner. `g` counts the query heads that share one K/V head."""

    rmsnorm: bool = False
    pre_norm: bool = False
    rope: bool = False
    swiglu: bool = False
    gqa: bool = False
    bias_free: bool = False
    qk_norm: bool = False
    z_loss: bool = False
    tied: bool = True
    g: int = 4

    def but(self, **changes):
        """A copy with some toggles changed."""
        return replace(self, **changes)


VANILLA = Recipe()
LLAMA_STYLE = Recipe(rmsnorm=True, pre_norm=True, rope=True, swiglu=True, gqa=True, bias_free=True)
EVERYTHING = LLAMA_STYLE.but(qk_norm=True, z_loss=True)
# What a checkbox says: on, and what stands there when it is off.
LABELS = {
    "rmsnorm": ("RMSNorm", "LayerNorm"),
    "pre_norm": ("pre-norm", "post-norm"),
    "rope": ("RoPE", "learned positions"),
    "swiglu": ("SwiGLU", "GELU, F = 4D"),
    "gqa": ("GQA", "a K/V head for every query head"),
    "bias_free": ("bias-free", "biases"),
    "qk_norm": ("QK-norm", "no QK-norm"),
    "z_loss": ("z-loss", "no z-loss"),
    "tied": ("tied embeddings", "a head of its own"),
}


def recipe_of(cfg):
    """The toggles that a configuration has on. z-loss belongs to the training, so no configuration shows it."""
    shared = cfg.K < cfg.N
    return Recipe(
        rmsnorm=cfg.norm == "rmsnorm",
        pre_norm=cfg.norm_position != "post",
        rope=cfg.positions == "rope",
        swiglu=cfg.ffn != "gelu",
        gqa=shared,
        bias_free=not cfg.bias,
        qk_norm=cfg.qk_norm,
        tied=cfg.tie_embeddings,
        g=cfg.G if shared else default_g(cfg.N),
    )


def choices_of_g(N):
    """How many query heads may share one K/V head: the divisors of N from 2 on; N itself is MQA."""
    return [g for g in range(2, N + 1) if N % g == 0]


def default_g(N):
    """4, as in Llama 3, where it divides N; else the smallest that does; 1 for a single head."""
    choices = choices_of_g(N)
    return 4 if 4 in choices else choices[0] if choices else 1


def config_of(recipe, base, implementation):
    """The ModelConfig of a recipe in the shape of `base`; what no toggle speaks about stays as it is.

    An FFN that changes its kind changes its width: plain ones have F = 4D, gated ones what the
    implementation's ffn_dim says. ValueError where g doesn't divide N.
    """
    if recipe.gqa and base.N % recipe.g:
        raise ValueError(f"g = {recipe.g} query heads can't share a K/V head evenly: g must divide N = {base.N}.")
    gated = base.ffn != "gelu"
    if recipe.swiglu == gated:
        ffn, F = base.ffn, base.F
    else:
        ffn, F = ("swiglu", implementation.ffn_dim(base.D)) if recipe.swiglu else ("gelu", 4 * base.D)
    placed = base.norm_position if base.norm_position != "post" else "pre"  # Gemma's sandwich is pre-norm and more
    return base.but(
        norm="rmsnorm" if recipe.rmsnorm else "layernorm",
        norm_position=placed if recipe.pre_norm else "post",
        positions="rope" if recipe.rope else "learned",
        ffn=ffn,
        ffn_dim=F,
        K=base.N // recipe.g if recipe.gqa else base.N,
        bias=not recipe.bias_free,
        qk_norm=recipe.qk_norm,
        tie_embeddings=recipe.tied,
    )


@dataclass(frozen=True)
class Card:
    """One figure of merit: its number, one line about it, and its arithmetic as (left, right) lines.

    `light` is "good", "watch" or "bad" where there is something to judge, else None.
    """

    title: str
    number: str
    note: str
    arithmetic: tuple = ()
    light: str | None = None


@dataclass(frozen=True)
class Answer:
    """What one recipe costs and gives, and how it was asked."""

    recipe: Recipe
    cfg: ModelConfig
    S: int
    implementation: str
    total: int | None  # count_parameters
    cache_per_token: int | None  # kv_cache_bytes_per_token
    cache: int | None  # bytes at S tokens; None also where S tokens are out of reach
    parts: ledger.Parameters | None  # as the model is built
    stack: deep_stack.Measured | None  # None while it is not measured
    cards: tuple


def ask(recipe, base, S, implementation, measure=True):
    """The Answer for a recipe in the shape of `base` at a context of S tokens.

    A part of the implementation that is not started, or fails, leaves its card with one sentence.
    `measure=False` leaves stability out, which takes seconds the first time; afterwards it is remembered.
    """
    cfg = config_of(recipe, base, implementation)
    reach = S if cfg.positions == "rope" else min(S, cfg.T_max)
    (total, parts), why_not_total = _tried(implementation, lambda: _parameters(cfg, implementation), (None, None))
    (per_token, cache), why_not_cache = _tried(
        implementation,
        lambda: (implementation.kv_cache_bytes_per_token(cfg), ledger.cache_bytes(cfg, implementation, reach)),
        (None, None),
    )
    stack, why_not_stack = None, "measuring ..."
    if measure:
        stack, why_not_stack = _tried(implementation, lambda: deep_stack.measure(recipe, implementation), None)
    pairs, why_not_pairs = _tried(implementation, lambda: unturned_pairs(cfg, implementation), None)
    cards = (
        _parameter_card(cfg, total, parts, implementation) if parts else Card("Parameters", "?", why_not_total),
        _cache_card(cfg, per_token) if cache else Card("KV cache per token", "?", why_not_cache),
        _context_cache_card(cfg, S, reach, cache) if cache else Card(f"KV cache at {S:,} tokens", "?", why_not_cache),
        _stability_card(stack) if stack else Card("Stability at depth", "...", why_not_stack),
        _context_card(cfg, pairs) if pairs is not None else Card("Usable context", "?", why_not_pairs),
    )
    kept = cache if reach == S else None
    return Answer(recipe, cfg, S, implementation.name, total, per_token, kept, parts, stack, cards)


def unturned_pairs(cfg, implementation):
    """Pairs of a head that have not turned once within T_max tokens: past it they meet angles never seen."""
    if cfg.positions == "learned":
        return 0
    frequencies = implementation.rope_frequencies(cfg.H, cfg.rope_theta)
    return int((frequencies * cfg.T_max < 2 * math.pi).sum())


@functools.lru_cache(maxsize=256)
def _parameters(cfg, implementation):
    return int(implementation.count_parameters(cfg)), ledger.parameters(cfg, implementation)


def _tried(implementation, work, nothing):
    """(result, ""), or (nothing, one sentence) where the implementation can't answer yet."""
    try:
        return Subject(implementation).guard(work), ""
    except StudentError as error:
        if not error.place:  # no line of the implementation is involved: the fault is ours
            raise
        return nothing, f"the implementation raised {error}"
    except (NotStarted, ContractError, ImplementationError) as error:
        return nothing, str(error)


# The cards ----------------------------------------------------------------------------------------


def _parameter_card(cfg, total, parts, implementation):
    lines = []
    for name, shape in _tensors_of_layer_0(cfg, implementation):
        lines.append((f"{name}: {' x '.join(f'{n:,}' for n in shape)}", f"{math.prod(shape):,}"))
    lines.append(("a layer", f"{parts.layer:,}"))
    lines.append((f"L = {cfg.L} layers: {cfg.L} x {parts.layer:,}", f"{parts.layers:,}"))
    lines.append((f"embedding: V x D = {cfg.V:,} x {cfg.D:,}", f"{parts.embedding:,}"))
    if parts.positions:
        lines.append((f"learned positions: T_max x D = {cfg.T_max:,} x {cfg.D:,}", f"{parts.positions:,}"))
    lines.append(("final norm", f"{parts.final_norm:,}"))
    lines.append(("head, tied: the embedding again" if not parts.head else "head: V x D", f"{parts.head:,}"))
    lines.append(("total", f"{parts.total:,}"))
    note = f"{total / 1e9:.2f}B" if total >= 1e9 else f"{total / 1e6:.1f}M"
    light = None
    if total != parts.total:
        note, light = f"count_parameters says this, but the built model holds {parts.total:,}", "bad"
    return Card("Parameters", f"{total:,}", note, tuple(lines), light)


@functools.lru_cache(maxsize=256)
def _tensors_of_layer_0(cfg, implementation):
    model = ledger.build_without_memory(cfg.but(L=1, windows=cfg.window_of(0)), implementation)
    return tuple((name, tuple(p.shape)) for name, p in model.blocks[0].named_parameters())


def _cache_card(cfg, per_token):
    lines = (
        (f"2 (keys and values) x L x K x H x 2 bytes = 2 x {cfg.L} x {cfg.K} x {cfg.H} x 2", f"{per_token:,} bytes"),
        (f"K = {cfg.K} heads are kept, N = {cfg.N} would be", f"G = N / K = {cfg.G}"),
    )
    return Card("KV cache per token", f"{per_token:,} bytes", f"{per_token / 1024:,.4g} KB (of 1,024 bytes)", lines)


def _context_cache_card(cfg, S, reach, cache):
    title = f"KV cache at {S:,} tokens"
    if reach < S:
        note = f"token {cfg.T_max + 1:,} has no row in the table; at {cfg.T_max:,} tokens it is {cache / 1e9:.2f} GB"
        return Card(title, "out of reach", note, light="bad")
    capped = sum(1 for layer in range(cfg.L) if (cfg.window_of(layer) or S) < S)
    note = "one sequence" + (f"; {capped} of {cfg.L} layers keep only their window" if capped else "")
    full = 2 * cfg.L * cfg.K * cfg.H * 2 * S
    lines = ((f"bytes per token x S = {full // S:,} x {S:,}", f"{full:,} bytes"),)
    if capped:
        lines += ((f"{capped} layers hold their window only", f"{cache:,} bytes"),)
    return Card(title, f"{cache / 1e9:.2f} GB", note, lines)


def _stability_card(stack):
    light = "bad" if not stack.learned else "good" if stack.guarded else "watch"
    number = {"bad": "does not learn", "watch": "learns, unguarded", "good": "learns, guarded"}[light]
    guess = f"{stack.guess:.2f}"
    note = f"loss {stack.loss:.2f} after {deep_stack.STEPS} steps without warm-up; a blind guess has {guess}"
    lines = (
        (f"measured on a stack of L = {deep_stack.L}, D = {deep_stack.D}; rate {deep_stack.RATE}, one try", ""),
        (f"loss, mean of the last {deep_stack.LAST} steps; a blind guess has log V = {guess}", f"{stack.loss:.2f}"),
        ("at the start: gradient of the top 4 layers over the bottom 4", f"{stack.gradient_ratio:.2f}"),
        ("at the start: size of the stream after the last layer over the first", f"{stack.growth:.2f}"),
        (f"largest attention weight, w_q and w_k drifted to {deep_stack.DRIFT} times", f"{stack.saturation:.2f}"),
        (f"pull on log Z when it has drifted to {deep_stack.LOG_Z}", f"{stack.pull:.4f}"),
    )
    return Card("Stability at depth", number, note, lines, light)


def _context_card(cfg, pairs):
    T = cfg.T_max
    if cfg.positions == "learned":
        lines = ((f"the table has T_max = {T:,} rows; token {T + 1:,} has none", f"{T:,} tokens"),)
        return Card("Usable context", f"{T:,} tokens", f"a wall: token {T + 1:,} has no row", lines, "bad")
    lines = (
        (f"pairs of a head: H / 2 = {cfg.H} / 2", f"{cfg.H // 2}"),
        (f"of these turn less than once in {T:,} tokens (base {cfg.rope_theta:,.0f})", f"{pairs}"),
        ("past the trained length exactly these meet angles they never saw", ""),
        ("interpolation, NTK and YaRN bring the angles back: notebook 10", ""),
    )
    note = f"no wall; raw RoPE gets worse past the trained {T:,}, as {pairs} of {cfg.H // 2} pairs see new angles"
    return Card("Usable context", f"{T:,} and beyond", note, lines, "good")
