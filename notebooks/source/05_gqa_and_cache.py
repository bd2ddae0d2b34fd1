# %% [markdown]
# # 05 Grouped-query attention and the cache
#
# **The question.** Training goes well, and then the model is served: the memory is full long before the processor is busy. What
# fills it, does it have to be that much, and what do we give up if we keep a quarter?
#
# To write token t + 1, attention needs the keys and values of all tokens before it, in every layer. They do not change, so
# they are kept: the key/value cache.
#
# $$\text{bytes per token} = 2 \cdot L \cdot K \cdot H \cdot \text{bytes per number}$$
#
# N query heads, K key/value heads, G = N / K query heads to each, H head size, S tokens kept. The 2 is for keys *and* values.

# %%
import time

import torch

from nanolm.cache import Cache
from nanolm.classroom import (
    COLOURS, attention_weights, active, choice, claim, pictures, show, slider, smollm2, watch,
)
from nanolm.config import ModelConfig, preset
from nanolm.recipe.ledger import parameters
from nanolm.model import LanguageModel

MHA, GQA, MQA = COLOURS["orange"], COLOURS["blue"], COLOURS["green"]
impl = active("repeat_kv", "causal_mask", "kv_cache_bytes_per_token", "GroupedQueryAttention", "Block")

# %% [markdown]
# ## What the cache costs
#
# The 7B class: L = 32, N = 32, H = 128, two bytes a number. With as many key/value heads as query heads (MHA), K = 32.
#
# **Change and watch**: the number of tokens kept. The line is what a 24 GB card has left beside 13.5 GB of weights.

# %%
seven = preset("llama2-7b")
kinds = {"MHA, K = 32": seven, "GQA, K = 8": seven.but(K=8), "MQA, K = 1": seven.but(K=1)}
per_token = {name: impl.kv_cache_bytes_per_token(cfg) for name, cfg in kinds.items()}


def cache_bars(S):
    figure, axes = pictures()
    sizes = [bytes_ * S / 1e9 for bytes_ in per_token.values()]
    bars = axes.barh(list(per_token), sizes, color=[MHA, GQA, MQA])
    axes.bar_label(bars, fmt="%.2f GB", fontsize=19, padding=6)
    axes.axvline(10.5, color=COLOURS["black"], linestyle=":")
    axes.text(10.6, 2.55, "10.5 GB left", fontsize=16)
    axes.invert_yaxis()
    axes.set(xlabel="cache of one sequence, GB (10^9 bytes)", xlim=(0, 21), title=f"S = {S:,} tokens", ylim=(2.7, -0.6))
    return figure


tokens_kept = watch(cache_bars, S=slider("S, tokens kept", [1_024, 4_096, 8_192, 16_384, 32_768], start=32_768))
claim("weights of the 7B class, GB", 2 * parameters(seven, impl).total / 1e9, 13.5, within=0.05)
claim("MHA, bytes a token", per_token["MHA, K = 32"], 524_288)
claim("that is, in KB of 1,024 bytes", per_token["MHA, K = 32"] / 1024, 512)
claim("GQA with K = 8, in KB", per_token["GQA, K = 8"] / 1024, 128)
claim("MHA, 32,768 tokens, in GB", per_token["MHA, K = 32"] * 32_768 / 1e9, 17.2, within=0.05)
claim("GQA, 32,768 tokens, in GB", per_token["GQA, K = 8"] * 32_768 / 1e9, 4.3, within=0.05)
claim("the same two in GiB of 2^30", [per_token[name] * 32_768 / 2**30 for name in list(kinds)[:2]], [16, 4])

# %% [markdown]
# ## Heads and groups
#
# All N query heads stay. Only the keys and values are fewer, and each is read by G query heads: query head n reads key/value
# head n // G. The order matters: `[k0 k0 k1 k1]`, not `[k0 k1 k0 k1]`. Drawn from what the code under test returns:


# %%
def sharing(kind):
    N, K = 4, {"MHA": 4, "GQA": 2, "MQA": 1}[kind]
    numbered = torch.arange(K, dtype=torch.float32).view(1, K, 1, 1)
    reads = impl.repeat_kv(numbered, N // K)[0, :, 0, 0].int().tolist()
    figure, axes = pictures(height=3.6, width=12)
    shades = [COLOURS[name] for name in ("blue", "orange", "green", "purple")]
    for n, head in enumerate(reads):
        left = (head + 0.5) * N / K
        axes.plot([n + 0.5, left], [1.0, 0.3], color=shades[head])
        axes.text(n + 0.5, 1.12, f"q{n}", ha="center", fontsize=22, fontweight="bold", color=shades[head])
    for head in range(K):
        axes.text((head + 0.5) * N / K, 0.08, f"k{head} v{head}", ha="center", fontsize=22, fontweight="bold",
                  color="white", bbox={"facecolor": shades[head], "edgecolor": "none", "boxstyle": "round"})
    axes.set(xlim=(0, N), ylim=(-0.1, 1.4))
    axes.set_title(f"{kind}: N = {N}, K = {K}, G = {N // K}    [{' '.join(f'k{head}' for head in reads)}]")
    axes.axis("off")
    return figure


shown = watch(sharing, kind=choice("K is", ["MHA", "GQA", "MQA"], start="GQA"))
order = impl.repeat_kv(torch.tensor([0.0, 1.0]).view(1, 2, 1, 1), 2).flatten()
claim("K = 2, G = 2: key/value head that each query head reads", order, [0, 0, 1, 1])

# %% [markdown]
# *A kind word on the lessons.* One calls the number of key/value heads g, another calls N / K by that letter. Here K is the
# number of key/value heads and G = N / K, and the cache shrinks by exactly G.

# %%
factors = [1, 2, 4, 8, 16, 32]
sizes = [impl.kv_cache_bytes_per_token(seven.but(K=32 // G)) / 1024 for G in factors]
figure, axes = pictures()
axes.loglog(factors, sizes, "o-", color=GQA, base=2)
for G, size in zip(factors, sizes, strict=True):
    name = {1: "MHA", 4: "GQA of Llama 3", 32: "MQA"}.get(G, "")
    axes.annotate(f"{name}\n{size:.0f} KB", (G, size), xytext=(8, 6), textcoords="offset points", fontsize=16)
axes.set_xticks(factors, factors)
axes.set_yticks(sizes, [f"{size:.0f}" for size in sizes])
axes.set(xlabel="G, query heads that share", ylabel="KB a token (log)", xlim=(0.9, 60), ylim=(10, 1400))
axes.set_title("Every doubling of G halves the cache")
show(figure)
claim("cache of MHA over cache of GQA with G = 4", sizes[0] / sizes[2], 4)

# %% [markdown]
# ## The mask
#
# Query t sees its own token and those before it. With a cache the T new queries are the *last* T of S tokens, so the mask of a chunk
# is the lower end of the whole one. From the code under test:

# %%
figure, axes = pictures(columns=3, width=14, height=4.6)
masks = {"the whole text, T = S = 6": (6, 6), "a chunk, T = 2 of S = 6": (2, 6), "one token, T = 1 of S = 6": (1, 6)}
for panel, (title, shape) in zip(axes, masks.items(), strict=True):
    mask = impl.causal_mask(*shape)
    panel.imshow(mask, cmap="cividis", vmin=0, vmax=1, extent=(0, 6, 6, 6 - shape[0]))
    panel.set(xlabel="key (S)", ylabel="query: token", xlim=(0, 6), ylim=(6, 0), title=title)
    panel.title.set_fontsize(16)
show(figure)
claim("tokens seen by each query of the chunk", impl.causal_mask(2, 6).sum(dim=-1), [5, 6])
claim("tokens seen by the one new token", impl.causal_mask(1, 6).sum(dim=-1), [6])

# %% [markdown]
# ## Scores and scale
#
# A score is a sum of H products: with entries of unit variance its variance is H. Divided by $\sqrt H$ it is 1 for every head size, and
# the softmax begins soft.

# %%
sizes = [8, 16, 32, 64, 128, 256]
generator = torch.Generator().manual_seed(0)
raw = [float((torch.randn(4000, H, generator=generator) * torch.randn(4000, H, generator=generator)).sum(-1).std()) for H in sizes]
scaled = [spread / H**0.5 for spread, H in zip(raw, sizes, strict=True)]
figure, axes = pictures(height=4)
axes.plot(sizes, raw, "o-", color=MHA, label="q . k")
axes.plot(sizes, scaled, "o-", color=GQA, label=r"q . k / $\sqrt{H}$")
axes.legend(fontsize=17)
axes.set(xlabel="head size H", ylabel="spread of the scores", title="Without the scale, larger heads shout")
show(figure)
claim("spread at H = 64: raw, scaled", [raw[3], scaled[3]], [8, 1], within=0.3)

# %% [markdown]
# ## The cache
#
# The same tiny model writes 64 tokens twice: once it is given the whole text at every step, once only the new token and a
# cache. The answers must be the same. The work is not.

# %%
cfg = ModelConfig(L=2, V=64, D=64, N=8, K=2, ffn_dim=128, T_max=256)
torch.manual_seed(0)
model = LanguageModel(cfg, impl).eval()
text = torch.randint(64, (1, 192), generator=torch.Generator().manual_seed(0))

tokens_read, difference, cache = {"without": [], "with": []}, 0.0, Cache(cfg)
seconds = {"without": 0.0, "with": 0.0}
with torch.no_grad():
    model(text[:, :127], cache)
    for step in range(128, 192):
        start = time.perf_counter()
        whole = model(text[:, :step])[0, -1]
        middle = time.perf_counter()
        new = model(text[:, step - 1 : step], cache)[0, -1]
        seconds["with"] += time.perf_counter() - middle
        seconds["without"] += middle - start
        difference = max(difference, float((whole - new).abs().max()))
        tokens_read["without"].append(step)
        tokens_read["with"].append(1)

figure, axes = pictures()
written = range(1, 65)
for name, colour in (("without", MHA), ("with", GQA)):
    axes.plot(written, torch.tensor(tokens_read[name]).cumsum(0), color=colour, label=f"{name} a cache")
axes.legend(fontsize=18)
axes.set(xlabel="tokens written after a text of 127", ylabel="tokens sent through the model")
axes.set_title("Without a cache all is computed again, at every step")
show(figure)
claim("largest difference of the logits", difference, at_most=1e-4)
claim("tokens through the model, without over with", sum(tokens_read["without"]) / sum(tokens_read["with"]), 159.5)
claim("bytes in the cache (fp32), as the formula says", sum(layer.nbytes for layer in cache.layers),
      impl.kv_cache_bytes_per_token(cfg, 4) * 191)
print(f"on this machine: {seconds['without']:.2f} s without, {seconds['with']:.2f} s with")

# %% [markdown]
# The keys are kept *after* RoPE: a key's position never changes, so it is turned once. The new token's position goes on
# counting where the cache ends.
#
# ## A real one: SmolLM2, N = 9, K = 3
#
# Three query heads read one key/value head. Do they all look at the same place? A layer's nine heads on one sentence:

# %%
real = smollm2(impl)
if real:
    words = real.words.encode("The cat sat on the mat because the cat was tired.")
    tokens = torch.tensor([words.ids])
    seen = attention_weights(real.model, tokens, layer=9)[0]  # (N, T, T)
    figure, axes = pictures(columns=3, rows=3, height=3.7, width=12)
    for head, panel in enumerate(axes.flat):
        image = panel.imshow(seen[head].sqrt(), cmap="cividis", vmin=0, vmax=1)
        panel.set_title(f"q{head} reads k{head // real.cfg.G}", fontsize=16)
        panel.set(xticks=[], yticks=[])
        panel.grid(False)
    axes[2, 1].set_xlabel("key (S)")
    axes[1, 0].set_ylabel("query (T)")
    figure.suptitle("Layer 9 of SmolLM2: one shelf, three readers, each with questions of its own", fontsize=17)
    show(figure)
    apart = (seen[:, None] - seen[None]).abs().sum(dim=-1).mean(dim=-1) / 2  # share of attention placed differently
    same = [float(apart[a, b]) for a in range(9) for b in range(a) if a // 3 == b // 3]
    claim("share of attention that two readers of one shelf place differently", sum(same) / len(same), at_least=0.1)
    claim("G", real.cfg.G, 3)
    claim("bytes a token, two bytes a number", impl.kv_cache_bytes_per_token(real.cfg), 23_040)
    claim("with nine key/value heads", impl.kv_cache_bytes_per_token(real.cfg.but(K=9)), 69_120)

# %% [markdown]
# ## When it goes wrong
#
# | symptom | cause | the test that says so |
# | --- | --- | --- |
# | a loaded model is wrong, K = 1 and K = N are right | `[k0 k1 k0 k1]` | `test_attention_repeat_kv_keeps_neighbours_together` |
# | the memory is four times what it should be | N heads are cached | `test_cache_stores_K_heads`, `test_budget_cache_bytes_per_token` |
# | the first step is right, the second is not | positions start again at 0 | `test_cache_decode_matches_the_whole` |
# | right token by token, wrong in chunks | the mask takes the T queries for the first of S | `test_attention_mask_aligns_queries_with_the_last_keys` |
# | every step turns all keys again | keys are cached before RoPE | `test_cache_stores_turned_keys` |
# | the budget is off for models with H not D / N | H taken as D / N | `test_budget_cache_uses_the_head_size` |

# %% [markdown]
# ## Checkpoint
#
# <details><summary>Interview: how large is the cache, derived, and how does GQA shrink it?</summary>
#
# Per token and layer a key and a value of H numbers for each of K heads: $2 \cdot L \cdot K \cdot H$ numbers in all, times their
# bytes. MHA has K = N; GQA has K = N / G and so divides by G. All N query heads stay. With 32 and 8: 512 KB become 128 KB. Does it
# cost quality? Little; MQA, K = 1, costs more.
#
# </details>
#
# <details><summary>Why is there no gain to speak of in training?</summary>
#
# Training sees the whole text at once and keeps no cache between steps. What shrinks is `w_k` and `w_v`, a small part of a layer.
#
# </details>
#
# <details><summary>17.2 GB and 4.3 GB, or 16 and 4?</summary>
#
# Both: $524{,}288 \cdot 32{,}768$ bytes are 17.18 GB of $10^9$ bytes and exactly 16 GiB of $2^{30}$.
#
# </details>
#
# <details><summary>Which two key/value orders give the same shapes, and how could you tell them apart?</summary>
#
# `[k0 k0 k1 k1]` and `[k0 k1 k0 k1]`. Give each key/value head a value of its own and read the output of query head 1: it must
# be the first one's. With K = 1 or K = N no test can see it.
#
# </details>
#
# <details><summary>Why are the cached keys the turned ones?</summary>
#
# A token's position is fixed, so its key is turned once. Caching raw keys would mean turning all S of them at every step.
#
# </details>
