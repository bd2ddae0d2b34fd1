# %% [markdown]
# # 10 Windows and long context
#
# **The question.** A context of 128k tokens costs T squared in attention and 128k entries of cache in every layer, and a model trained on 8k
# has never seen position 8,193. How do models read far, without looking everywhere, and without training at 128k from the first day?
#
# Two tools, and they are independent: a *window* limits who is looked at, and *scaled angles* bring far positions back
# to where the model was trained.

# %%
import copy
import math

import torch

from nanolm.recipe import ledger
from nanolm.cache import Cache
from nanolm.classroom import COLOURS, Characters, active, batches, claim, next_token_loss, pictures, show, slider, train, watch
from nanolm.config import ModelConfig, preset
from nanolm.model import LanguageModel

impl = active("causal_mask", "rope_frequencies", "rope_cos_sin", "GroupedQueryAttention", "Block", "kv_cache_bytes_per_token")

# %% [markdown]
# ## The reach of a window
#
# A token sees itself and the w - 1 before it. What it sees has itself looked back one layer below. We measure: which input tokens
# does the last token's output depend on, after each layer of the active implementation?

# %%
torch.manual_seed(0)
WINDOW, DEPTH, T = 4, 6, 24
cfg = ModelConfig(L=DEPTH, V=8, D=16, N=2, K=1, ffn_dim=40, windows=WINDOW)
blocks = [impl.Block(cfg, layer) for layer in range(DEPTH)]
cos, sin = impl.rope_cos_sin(torch.arange(T), impl.rope_frequencies(cfg.H))


def reach(depth):
    """True where the last token's output after `depth` layers depends on input token t."""
    x = torch.randn(1, T, cfg.D, requires_grad=True)
    h = x
    for block in blocks[:depth]:
        h = block(h, cos, sin)
    h[0, -1].sum().backward()
    return x.grad[0].abs().sum(dim=-1) > 0


seen = torch.stack([reach(depth) for depth in range(1, DEPTH + 1)])  # (layers, T)
figure, axes = pictures(height=4.6)
axes.imshow(seen, cmap="Blues", vmin=0, vmax=1.25, aspect="auto")
for row, count in enumerate(seen.sum(dim=1).tolist()):
    axes.text(0.2, row, f"sees {count}", va="center", fontsize=17)
axes.set_yticks(range(DEPTH), range(1, DEPTH + 1))
axes.set(xlabel="input token t (the last one asks)", ylabel="layers $l$", title=f"Window w = {WINDOW}: reach is l (w - 1) + 1")
axes.grid(False)
show(figure)
claim("tokens seen after each layer", seen.sum(dim=1).tolist(), [depth * (WINDOW - 1) + 1 for depth in range(1, DEPTH + 1)])
mistral = preset("mistral-7b")
claim("Mistral 7B: L (w - 1) + 1", mistral.L * (mistral.windows - 1) + 1, 131_041)

# %% [markdown]
# *A kind word on the lessons.* "l times w" is a good thumb's rule. Where w counts the token itself, as here and in Mistral, it is exactly
# l (w - 1) + 1: 131,041 and not 131,072.
#
# ## The window
#
# What the masks look like: a query sees itself and the w - 1 keys before it, counted from its own place.
# Each layer has its own window: Gemma 2 alternates layers with one of 4,096 and layers that see all, so a block must ask for its own layer's.

# %%
figure, axes = pictures(columns=3, width=16, height=5)
for panel, (title, window) in zip(axes, (("every token before", None), ("window w = 4", 4), ("window w = 1: itself", 1)), strict=True):
    panel.imshow(impl.causal_mask(12, 12, window), cmap="Blues", vmin=0, vmax=1.25)
    panel.set(xlabel="key S", ylabel="query T", title=title, xticks=[0, 11], yticks=[0, 11])
    panel.grid(False)
show(figure)
gemma = preset("gemma2-2b")
claim("Gemma 2's first four windows (0 = sees all)", [gemma.window_of(layer) or 0 for layer in range(4)], [4_096, 0, 4_096, 0])
claim("pairs looked at by 12 tokens: all, w = 4", [int(impl.causal_mask(12, 12, w).sum()) for w in (None, 4)], [78, 42])

# %% [markdown]
# ## The cache stops growing
#
# What falls out of the window is never looked at again, so a windowed layer keeps no more than its window. **Change and watch:** how many of the
# layers have one?


# %%
CONTEXTS = [1_024, 4_096, 8_192, 16_384, 32_768, 65_536, 131_072]
plain = preset("llama3-8b")


def cache_picture(every):
    figure, axes = pictures(height=5)
    pattern = {"none": None, "every second": (4_096, None) * 16, "5 of 6": ((4_096,) * 5 + (None,)) * 5 + (4_096,) * 2, "all": 4_096}
    for name, windows in pattern.items():
        chosen = name == every
        gigabytes = [ledger.cache_bytes(plain.but(windows=windows), impl, S) / 1e9 for S in CONTEXTS]
        axes.plot(CONTEXTS, gigabytes, color=COLOURS["blue" if chosen else "grey"], linewidth=5 if chosen else 2)
        axes.text(134_000, gigabytes[-1], f"{name}: {gigabytes[-1]:.2f} GB", va="center", fontsize=17 if chosen else 14,
                  color=COLOURS["blue" if chosen else "grey"])
    axes.set(xlabel="context S, tokens", ylabel="KV cache, GB", xlim=(0, 172_000), title=f"Layers with a window of 4,096: {every}")
    axes.set_xticks([4_096, 32_768, 65_536, 131_072], ["4k", "32k", "64k", "128k"])
    return figure


grown = watch(cache_picture, every=slider("layers with a window", ["none", "every second", "5 of 6", "all"], start="every second"))
full, half, capped = (
    ledger.cache_bytes(plain.but(windows=windows), impl, 131_072) for windows in (None, (4_096, None) * 16, 4_096)
)
claim("all layers windowed: cache at 128k over cache at 4k", capped / ledger.cache_bytes(plain, impl, 4_096), 1)
claim("bytes per token of cache without windows", full / 131_072, impl.kv_cache_bytes_per_token(plain))
claim("every second layer: share of the full cache at 128k", half / full, 0.516, within=0.001)

# %% [markdown]
# And in a real cache, filled token by token by the active implementation:

# %%
torch.manual_seed(0)
small = ModelConfig(L=4, V=32, D=32, N=4, K=2, ffn_dim=88, windows=(8, None, 8, None))
model = LanguageModel(small, impl).eval()
kept, cache = [], Cache(small)
with torch.no_grad():
    for token in torch.randint(32, (40,)):
        model(token.view(1, 1), cache)
        kept.append([layer.nbytes for layer in cache.layers])
kept = torch.tensor(kept) / 1024
figure, axes = pictures(height=4.2)
axes.plot(kept[:, 1], color=COLOURS["orange"])
axes.plot(kept[:, 0], color=COLOURS["blue"])
axes.text(24, 4.2, "a layer that sees all", color=COLOURS["orange"], fontsize=18, fontweight="bold", ha="right")
axes.text(39, 1.3, "a layer with a window of 8", color=COLOURS["blue"], fontsize=18, fontweight="bold", ha="right")
axes.set(xlabel="tokens generated", ylabel="cache, KB", title="Alternating layers: half of them stop growing")
show(figure)
claim("KB after 40 tokens: windowed, full", kept[-1, :2], [2 * 2 * 7 * 8 * 4 / 1024, 2 * 2 * 40 * 8 * 4 / 1024])

# %% [markdown]
# ## Past the trained length
#
# Now the other tool. We train a tiny model on texts of 48 letters, and read texts of 192 with it: four times as long. RoPE has an angle for every
# position, so nothing breaks. But is what comes out still good?

# %%
TRAINED, STRETCH = 48, 4
text = Characters()
torch.manual_seed(0)
cfg = ModelConfig(L=2, V=text.V, D=64, N=4, K=2, ffn_dim=176, T_max=TRAINED, tie_embeddings=True)
model = LanguageModel(cfg, impl)
losses = train(model, text.tokens, steps=300, B=12, T=TRAINED)
LONG = TRAINED * STRETCH
long_texts = torch.stack([text.tokens[start : start + LONG] for start in range(0, len(text.tokens) - LONG, 61)])


@torch.no_grad()
def perplexity(model, **angles):
    """Perplexity by position, (LONG - 1,), averaged over the texts."""
    logits = model(long_texts, **angles)[:, :-1]
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), long_texts[:, 1:].flatten(), reduction="none")
    return loss.view(len(long_texts), -1).mean(dim=0).exp()


def smooth(curve):
    return torch.nn.functional.avg_pool1d(curve[None], 13, 1)[0]


raw = perplexity(model)
figure, axes = pictures(height=4.8)
axes.semilogy(range(6, 6 + len(smooth(raw))), smooth(raw), color=COLOURS["orange"])
axes.axvline(TRAINED, color=COLOURS["black"], linestyle="--")
axes.text(TRAINED + 2, 40, "trained to here", fontsize=18)
axes.set(xlabel="position", ylabel="perplexity (log)", title="Raw RoPE: no wall, and no help either")
axes.set_yticks([2, 5, 10, 20, 50], ["2", "5", "10", "20", "50"])
axes.minorticks_off()
show(figure)
inside, beyond = float(raw[: TRAINED - 1].mean()), float(raw[-TRAINED:].mean())
claim("perplexity inside the trained length", inside, at_most=4)
claim("perplexity in the last quarter over that inside", beyond / inside, at_least=4)

# %% [markdown]
# Why? The fast pairs have gone round many times in 48 letters and know every angle. The slow ones have seen only the beginning of their
# first turn, and past 48 they meet angles that they never met.

# %%
frequencies = impl.rope_frequencies(cfg.H)
turns = TRAINED * frequencies / (2 * math.pi)
figure, axes = pictures(height=4.4)
bars = axes.bar(range(cfg.H // 2), turns, color=[COLOURS["blue" if turn >= 1 else "orange"] for turn in turns])
axes.axhline(1, color=COLOURS["black"], linestyle="--")
axes.text(7.4, 1.15, "one full turn", fontsize=17, ha="right")
axes.set(yscale="log", xlabel="pair $i$ of a head", ylabel=f"turns in {TRAINED} letters (log)", title="Orange: never went round in training")
show(figure)
claim("pairs that never went round, of H / 2 = 8", int((turns < 1).sum()), 6)

# %% [markdown]
# Four answers to the same need, "192 positions must look like 48":
#
# | | what it does | formula, with s = 4 |
# | --- | --- | --- |
# | position interpolation | squeeze all positions | m becomes m / s |
# | NTK-aware | a larger base: slow pairs are squeezed, fast ones hardly | theta becomes theta s^(H / (H - 2)) |
# | YaRN | pairs that never turned are squeezed, fast ones left, a ramp between; and scores a little larger | scores times (0.1 ln s + 1)^2 |

# %%
keep = ((turns - 1) / (4 - 1)).clamp(0, 1)  # 0: never went round, squeeze; 1: went round often, leave
stretched = {
    "raw": {},
    "interpolation": {"positions": torch.arange(LONG) / STRETCH},
    "NTK": {"frequencies": impl.rope_frequencies(cfg.H, cfg.rope_theta * STRETCH ** (cfg.H / (cfg.H - 2)))},
    "YaRN": {"frequencies": frequencies / STRETCH * (1 - keep) + frequencies * keep},
}
hotter = copy.deepcopy(model)  # YaRN's larger scores: the same as larger queries
with torch.no_grad():
    for block in hotter.blocks:
        block.get_parameter("attn.w_q.weight").mul_((0.1 * math.log(STRETCH) + 1) ** 2)
curves = {name: perplexity(hotter if name == "YaRN" else model, **angles) for name, angles in stretched.items()}

figure, axes = pictures(height=5.4)
shades = {"raw": "orange", "interpolation": "grey", "NTK": "green", "YaRN": "blue"}
for name, curve in curves.items():
    line = smooth(curve)
    axes.semilogy(range(6, 6 + len(line)), line, color=COLOURS[shades[name]])
    axes.text(188, line[-1] * (0.88 if name == "YaRN" else 1.05), name, color=COLOURS[shades[name]], fontsize=18, fontweight="bold", va="center")
axes.axvline(TRAINED, color=COLOURS["black"], linestyle="--")
axes.set(xlabel="position", ylabel="perplexity (log)", xlim=(0, 225), title="Four times the trained length, nothing retrained")
axes.set_yticks([2, 5, 10, 20, 50], ["2", "5", "10", "20", "50"])
axes.minorticks_off()
show(figure)
last = {name: float(curve[-TRAINED:].mean()) for name, curve in curves.items()}
second = {name: float(curve[TRAINED : 2 * TRAINED].mean()) for name, curve in curves.items()}
claim("last quarter, raw over NTK and over YaRN", [last["raw"] / last["NTK"], last["raw"] / last["YaRN"]], at_least=1.5)
claim("just past the trained length: raw over NTK", second["raw"] / second["NTK"], at_least=1.3)
claim("inside the trained length: interpolation without training is far worse", float(curves["interpolation"][: TRAINED - 1].mean()) / inside, at_least=3)

# %% [markdown]
# Read it from left to right. Raw RoPE is best where it was trained and gets worse and worse. Interpolation squeezes the fast pairs too, which the model
# uses to tell neighbours apart, and without training that hurts everywhere. NTK and YaRN leave the fast pairs nearly alone.
#
# ## A little training goes a long way
#
# All of these are meant to be followed by a short continued training at the new length. Sixty steps, against three hundred of the main run:

# %%
def continued(name, steps=60):
    learner = copy.deepcopy(hotter if name == "YaRN" else model)
    optimizer = torch.optim.AdamW(learner.parameters(), lr=1e-3)
    for _, batch in zip(range(steps), batches(text.tokens, B=3, T=LONG), strict=False):
        loss = next_token_loss(learner(batch, **stretched[name]), batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return float(perplexity(learner, **stretched[name])[-TRAINED:].mean())


after = {name: continued(name) for name in ("interpolation", "YaRN")}
figure, axes = pictures(height=4)
for row, name in enumerate(after):
    axes.barh(row - 0.2, last[name], height=0.38, color=COLOURS["grey"])
    axes.barh(row + 0.2, after[name], height=0.38, color=COLOURS["blue"])
    axes.text(last[name] + 0.5, row - 0.2, f"before: {last[name]:.1f}", va="center", fontsize=18)
    axes.text(after[name] + 0.5, row + 0.2, f"after 60 steps: {after[name]:.1f}", va="center", fontsize=18)
axes.set_yticks(range(2), after, fontsize=19)
axes.set(xlabel="perplexity, positions 144 to 191", xlim=(0, 1.25 * max(last["interpolation"], last["YaRN"])))
axes.invert_yaxis()
show(figure)
claim("perplexity after over before", [after[name] / last[name] for name in after], at_most=0.6)

# %% [markdown]
# Llama 3 did it at scale: trained at 8,192 tokens for nearly all of its run, then grown to 128k in six stages on about 800 billion tokens, each
# stage held until short texts were as good as before and a needle was found again in the longer haystack. Its base went from 10,000 to 500,000, so that
# the slowest pair still tells positions 128k apart.

# %%
slowest = {base: float(2 * math.pi / impl.rope_frequencies(128, base)[-1]) for base in (10_000.0, 500_000.0)}
claim("slowest pair's wavelength in tokens, base 10,000", slowest[10_000.0], 54_410, within=10)
claim("slowest pair's wavelength in tokens, base 500,000", slowest[500_000.0], at_least=131_072)

# %% [markdown]
# ## When it goes wrong
#
# | symptom | cause | the test that says so |
# | --- | --- | --- |
# | a window of w sees w + 1 tokens | off by one: w counts the token itself | `test_window_counts_the_token_itself` |
# | right in training, wrong when generating | the window is laid from the first key, not from the last | `test_window_aligns_queries_with_the_last_keys` |
# | the mask is right, the model sees all | the attention never asks for its window | `test_window_reaches_the_attention` |
# | Gemma's global layers are short-sighted | every layer got layer 0's window | `test_window_belongs_to_its_layer` |
# | wrong from the w-th token on | mask and windowed cache disagree | `test_cache_works_with_a_window` |
# | interpolation changes nothing | positions are rounded to whole numbers | `test_rope_cos_sin_accepts_fractional_positions` |
# | NTK changes nothing | frequencies are computed inside and not taken | `test_rope_cos_sin_uses_the_frequencies_it_is_given` |

# %% [markdown]
# ## Checkpoint
#
# <details><summary>After l layers with a window of w, how far back can a token see?</summary>
#
# l (w - 1) + 1 tokens, itself included, where w counts the token: 131,041 for Mistral 7B (32 layers, 4,096). But indirectly: what is far away has passed through many layers.
#
# </details>
#
# <details><summary>What does a window save, and why does Gemma 2 not use it everywhere?</summary>
#
# Attention grows with T w, not T squared, and a layer's cache stops at w entries. In between, global layers see everything directly: a needle far back needs no chain of layers.
#
# </details>
#
# <details><summary>Interview: you serve a model trained at 8k out to 128k and quality collapses. What is likely, and what do you do?</summary>
#
# Raw RoPE: the slow pairs meet angles they never saw. Scale: NTK or YaRN at once, a larger base or interpolation with a short continued training. Check short texts too, since every squeeze costs a little there.
# (One lesson says that high-frequency pairs alias. It is the slow pairs that are new to their angles; the fast ones have seen all of theirs.)
#
# </details>
#
# <details><summary>Why does position interpolation need training more than NTK does?</summary>
#
# It squeezes all pairs alike, also the fast ones that tell a neighbour from the next but one: neighbours are suddenly a quarter of a step apart. NTK and YaRN leave fast pairs nearly alone.
#
# </details>
#
# <details><summary>Why not train at 128k from the start?</summary>
#
# Attention's cost grows with the square of the length, and most documents are short. Nearly all of what is learned can be learned at 8k.
#
# </details>
