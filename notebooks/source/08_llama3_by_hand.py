# %% [markdown]
# # 08 Llama 3 8B, counted by hand
#
# **The question.** A configuration is ten numbers, a model is eight billion. Can you get from the one to the other with a
# pencil, and say where the parameters are? Whoever can't will be surprised by the memory bill.
#
# | L | V | D | N | K | H | F | head |
# | --- | --- | --- | --- | --- | --- | --- | --- |
# | 32 | 128,256 | 4,096 | 32 | 8 | 128 | 14,336 | untied |

# %%
from nanolm.recipe import ledger
from nanolm.classroom import COLOURS, active, choice, claim, pictures, show, slider, watch
from nanolm.config import preset

impl = active("RMSNorm", "SwiGLU", "ffn_dim", "GroupedQueryAttention", "Block", "count_parameters", "kv_cache_bytes_per_token")
cfg = preset("llama3-8b")
parts = ledger.parameters(cfg, impl)  # read off the shapes of a model that is built without memory

# %% [markdown]
# ## A first guess that breaks
#
# "Four matrices of D by D and an FFN of 4D, times 32, and the vocabulary." That is how one counts a model of 2019. It misses:

# %%
guess = 32 * (4 * 4_096 * 4_096 + 2 * 4_096 * 4 * 4_096) + 128_256 * 4_096
figure, axes = pictures(height=3.2)
for row, (total, colour) in enumerate(((guess, "orange"), (parts.total, "blue"))):
    axes.barh(row, total / 1e9, color=COLOURS[colour])
    axes.text(total / 1e9 + 0.08, row, f"{total / 1e9:.2f}B", va="center", fontsize=18, fontweight="bold")
axes.set_yticks([0, 1], ["counted as in 2019", "Llama 3 8B"], fontsize=18)
axes.set(xlabel="parameters, billions", xlim=(0, 9.5))
axes.invert_yaxis()
show(figure)
claim("the guess of 2019 in billions", guess / 1e9, 6.968, within=0.001)
claim("the model", parts.total, 8_030_261_248)

# %% [markdown]
# Three lines are wrong, and two of them in opposite directions: K/V heads are shared (fewer), the FFN has three matrices of
# 3.5D (more), and the head is a matrix of its own (more).
#
# ## A layer
#
# Take the pencil. In attention $w_q$ and $w_o$ are D by N H, and $w_k$ and $w_v$ are D by K H. K H is 1,024 here. Then the FFN with its
# three matrices, then two norms. Write your five numbers down before you run the cell.

# %%
pencil = {
    "w_q": 4_096 * 4_096,
    "w_k": 4_096 * 1_024,
    "w_v": 4_096 * 1_024,
    "w_o": 4_096 * 4_096,
    "w_gate": 4_096 * 14_336,
    "w_up": 4_096 * 14_336,
    "w_down": 14_336 * 4_096,
    "norms": 2 * 4_096,
}
attention = sum(pencil[name] for name in ("w_q", "w_k", "w_v", "w_o"))
ffn = sum(pencil[name] for name in ("w_gate", "w_up", "w_down"))

figure, axes = pictures(height=5)
colours = ["orange"] * 4 + ["blue"] * 3 + ["grey"]
axes.bar(list(pencil), [size / 1e6 for size in pencil.values()], color=[COLOURS[colour] for colour in colours])
for place, size in enumerate(pencil.values()):
    axes.text(place, size / 1e6 + 1, f"{size / 1e6:.2f}M", ha="center", fontsize=16)
axes.text(1.5, 40, f"attention {attention / 1e6:.1f}M", ha="center", fontsize=19, color=COLOURS["orange"], fontweight="bold")
axes.text(5, 66, f"FFN {ffn / 1e6:.1f}M", ha="center", fontsize=19, color=COLOURS["blue"], fontweight="bold")
axes.set(ylabel="parameters, millions", ylim=(0, 74), title="One layer: four out of five parameters are in the FFN")
axes.tick_params(axis="x", labelsize=17)
show(figure)
claim("attention, a layer", attention, 41_943_040)
claim("FFN, a layer", ffn, 176_160_768)
claim("norms, a layer", pencil["norms"], 8_192)
claim("a layer", sum(pencil.values()), 218_112_000)
claim("FFN, share of a layer", ffn / sum(pencil.values()), 0.81, within=0.005)
claim("the built model says the same", [parts.attention, parts.ffn, parts.norms], [attention, ffn, 8_192])

# %% [markdown]
# Where does F = 14,336 come from? 8D/3, times 1.3, up to the next multiple of 1,024. It is 3.5 D, wider than "as many parameters as
# a GELU FFN" asks: extra width, bought on purpose.

# %%
claim("ffn_dim of Llama 2 7B", impl.ffn_dim(4_096), 11_008)
claim("ffn_dim of Llama 3 8B", impl.ffn_dim(4_096, 1.3, 1_024), 14_336)
claim("F over D", cfg.F / cfg.D, 3.5)

# %% [markdown]
# ## Outside the layers
#
# The embedding is V by D. The head is untied: as much again. One last norm. That is all.

# %%
layers, table, last = 32 * sum(pencil.values()), 128_256 * 4_096, 4_096
total = layers + 2 * table + last

figure, axes = pictures(height=3.6, width=14)
left = 0
pieces = (
    ("32 x attention", 32 * attention, "orange"), ("32 x FFN", 32 * ffn, "blue"), ("embedding", table, "yellow"), ("head", table, "green"),
)  # fmt: skip
for place, (name, size, colour) in enumerate(pieces):
    axes.barh(0, size / 1e9, left=left, color=COLOURS[colour], height=0.6)
    middle = left + size / 2e9
    if size / total > 0.1:
        axes.text(middle, 0, f"{name}\n{size / total:.1%}", ha="center", va="center", color="white", fontsize=19, fontweight="bold")
    else:
        axes.text(middle, 0.36 if place == 2 else -0.36, f"{name} {size / total:.1%}", ha="center", va="bottom" if place == 2 else "top",
                  fontsize=18, color=COLOURS[colour], fontweight="bold")
    left += size / 1e9
axes.set(yticks=[], ylim=(-0.6, 0.6), xlim=(0, 8.4), xlabel="parameters, billions", title=f"Llama 3 8B: {total:,}")
axes.grid(False)
show(figure)
claim("32 layers", layers, 6_979_584_000)
claim("embedding, and once more the head", table, 525_336_576)
claim("Llama 3 8B by hand", total, 8_030_261_248)
claim("Llama 3 8B by budget.py", impl.count_parameters(cfg), total)
claim("embedding and head, share of the model", 2 * table / total, 0.13, within=0.005)
claim("the untied head, share of the model", table / total, 0.065, within=0.0005)

# %% [markdown]
# ## Change and watch: tied or untied, small or large
#
# Tying uses one matrix for both jobs and saves V D. In a small model with a large vocabulary that is a lot.

# %%
NAMES = ["gpt2-small", "smollm2-135m", "gemma2-2b", "llama2-7b", "mistral-7b", "llama3-8b"]


def tying(name):
    shape = preset(name)
    tied, untied = (ledger.parameters(shape.but(tie_embeddings=on), impl) for on in (True, False))
    figure, axes = pictures(height=3.4)
    for row, sizes in enumerate((tied, untied)):
        body, table = sizes.total - sizes.embedding - sizes.head, sizes.embedding
        axes.barh(row, body, color=COLOURS["blue"])
        axes.barh(row, table, left=body, color=COLOURS["yellow"])
        axes.barh(row, sizes.head, left=body + table, color=COLOURS["green"])
        for word, place in (("body", body / 2), ("embedding", body + table / 2), ("head", sizes.total - sizes.head / 2)):
            if row and table > 0.1 * sizes.total:
                axes.text(place, row, word, ha="center", va="center", color="white", fontsize=17)
        axes.text(sizes.total * 1.01, row, f"{sizes.total / 1e6:,.1f}M", va="center", fontsize=17)
    saved = untied.total - tied.total
    axes.set_yticks([0, 1], ["tied", "untied"], fontsize=19)
    axes.set(xticks=[], xlim=(0, untied.total * 1.16))
    axes.set_title(f"{name}: tying saves {saved / untied.total:.1%} of the untied model")
    axes.invert_yaxis()
    return figure


tied_or_not = watch(tying, name=choice("model", NAMES))
gpt2 = preset("gpt2-small")
saves = gpt2.V * gpt2.D
claim("GPT-2 small", impl.count_parameters(gpt2), 124_439_808)
claim("tying saves GPT-2 small", saves, 38_597_376)
claim("of the tied model", saves / 124_439_808, 0.310, within=0.0005)
claim("of the untied model", saves / (124_439_808 + saves), 0.237, within=0.0005)

# %% [markdown]
# Blue is the body, yellow the embedding, green the head. "About a third" for GPT-2 small is 31.0% of the model as it is (tied), or
# 23.7% of what it would be untied: say of which one you speak.
#
# ## How much larger did the vocabulary get?
#
# *A kind word on the lessons.* GPT-2 against Llama 3 is called "four times larger" in one place. From GPT-2 it is 2.55 times; the
# factor of four is that from Llama 2 to Llama 3.

# %%
vocabularies = {"Llama 2": 32_000, "GPT-2": 50_257, "Llama 3": 128_256, "Gemma 2": 256_000}
figure, axes = pictures(height=4)
axes.bar(list(vocabularies), [V / 1e3 for V in vocabularies.values()], color=[COLOURS[c] for c in ("sky", "grey", "blue", "green")])
for place, V in enumerate(vocabularies.values()):
    axes.text(place, V / 1e3 + 4, f"{V:,}\nLlama 3 has {128_256 / V:.2f} x", ha="center", fontsize=16)
axes.set(ylabel="V, thousands", ylim=(0, 310))
axes.tick_params(axis="x", labelsize=18)
show(figure)
claim("Llama 3 over GPT-2", 128_256 / 50_257, 2.55, within=0.005)
claim("Llama 3 over Llama 2", 128_256 / 32_000, 4.008)

# %% [markdown]
# ## The cache
#
# Parameters are paid once, the cache for every token of every user. 2 for keys and values, L layers, K heads of H numbers, 2 bytes each.


# %%
def load(S):
    figure, axes = pictures(height=4)
    for row, K in enumerate((32, 8, 1)):
        gigabytes = impl.kv_cache_bytes_per_token(cfg.but(K=K)) * S / 1e9
        axes.barh(row, gigabytes, color=COLOURS["blue" if K == 8 else "grey"])
        axes.text(gigabytes + 0.5, row, f"{gigabytes:.2f} GB", va="center", fontsize=18)
    axes.axvline(parts.total * 2 / 1e9, color=COLOURS["orange"], linestyle="--")
    axes.text(parts.total * 2 / 1e9 + 0.4, -0.62, "all weights, bf16", color=COLOURS["orange"], fontsize=17)
    axes.set_yticks(range(3), ["K = 32 (MHA)", "K = 8 (GQA)", "K = 1 (MQA)"], fontsize=18)
    axes.set(xlim=(0, 75), xlabel=f"KV cache of one sequence of S = {S:,} tokens, GB")
    axes.invert_yaxis()
    return figure


cache = watch(load, S=slider("S", [2_048, 8_192, 32_768, 131_072], start=32_768))
claim("bytes a token, K = 8", impl.kv_cache_bytes_per_token(cfg), 131_072)
claim("KB a token, K = 32 and K = 8", [impl.kv_cache_bytes_per_token(cfg.but(K=K)) / 1_024 for K in (32, 8)], [512, 128])
claim("GB at 32,768 tokens, K = 32", impl.kv_cache_bytes_per_token(cfg.but(K=32)) * 32_768 / 1e9, 17.2, within=0.05)
claim("GB at 32,768 tokens, K = 8", impl.kv_cache_bytes_per_token(cfg) * 32_768 / 1e9, 4.3, within=0.05)

# %% [markdown]
# Here KB are 1,024 bytes and GB are $10^9$: the two numbers at 32k are exactly 16 and 4 GiB.
#
# ## When it goes wrong
#
# | symptom | cause | the test that says so |
# | --- | --- | --- |
# | 7.4B, not 8.0B | the head was taken as tied | `test_budget_counts_the_head_unless_tied` |
# | a layer is too large by 25,165,824 | K and V counted with N heads | `test_budget_counts_key_and_value_heads_once` |
# | a layer is a third too small in the FFN | two matrices, not three | `test_budget_counts_three_ffn_matrices` |
# | off by 4,096 | the final norm was forgotten | `test_budget_counts_the_norms` |
# | right for Llama, wrong elsewhere | H taken as D / N | `test_budget_uses_the_head_size_of_the_configuration` |
# | a float comes out | a division by 1e9 inside | `test_budget_is_an_int` |
# | F is 10,922 | not rounded up | `test_swiglu_ffn_dim_rounds_up` |

# %% [markdown]
# ## Checkpoint
#
# <details><summary>Count Llama 3 8B: where are the 8.03 billion?</summary>
#
# A layer: attention 41,943,040, FFN 176,160,768, norms 8,192; together 218,112,000, times 32 is 6,979,584,000. Twice 525,336,576 for
# embedding and head, 4,096 for the last norm: 8,030,261,248. The FFN is 81% of a layer, embedding and head 13% of the model.
#
# </details>
#
# <details><summary>What does weight tying give you, and why do large models often drop it?</summary>
#
# It saves V D: 31.0% of GPT-2 small, but 6.5% of Llama 3 8B. Embedding and head have different jobs: one says what a token means, the other what
# predicts it next. Where the share is small, two matrices are worth it. Gemma 2 2B keeps tying: its V = 256,000 would
# add more than a fifth of the model once more.
#
# </details>
#
# <details><summary>Interview: where does F = 8D/3 come from, and why does Llama 3 8B not have it?</summary>
#
# A plain FFN has 2 D 4D = 8 D^2 parameters, a gated one 3 D F. Set them equal: F = 8D/3. Llama 3 8B multiplies by 1.3 and rounds up to
# a multiple of 1,024: 14,336 = 3.5 D, extra width on purpose.
#
# </details>
#
# <details><summary>Interview: how many bytes of cache does one more token cost, and which symbol would you change?</summary>
#
# 2 L K H bytes times 2 in bf16: 131,072, or 128 KB. K: with K = N it would be four times as much. (A lesson's "g groups" is K; another's g is
# N / K = G. Ask which one is meant.)
#
# </details>
#
# <details><summary>Does RoPE appear in the count? Do biases?</summary>
#
# RoPE has no parameters: angles come from a formula. A learned table would add T_max D. There are no biases to count.
#
# </details>
