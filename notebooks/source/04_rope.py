# %% [markdown]
# # 04 RoPE: a position becomes an angle
#
# **The question.** GPT-2 adds a learned vector for each position. The table has 1,024 rows, so token 1,025 has none, and
# "three tokens back" is something each pair of rows has to learn anew. Could attention see *distance* directly, with no
# table at all?
#
# RoPE turns each query and key: entries come in pairs, and pair $i$ of a head of size H turns by
#
# $$\text{position} \times \theta_i, \qquad \theta_i = \text{base}^{-2i/H}, \qquad i = 0 \ldots H/2 - 1$$
#
# A query at position $n$ and a key at position $m$ then meet with the angle between them changed by $(n - m)\,\theta_i$:
# rotations compose, $R(a)^\top R(b) = R(b - a)$.

# %%
import torch

from nanolm.classroom import (
    COLOURS, active, claim, next_token_loss, pictures, show, slider, smollm2, watch,
)
from nanolm.classroom.small_text import TEXT
from nanolm.config import preset
from nanolm.model import LanguageModel
from nanolm.model.weights import halves_to_neighbours

TAU = 2 * torch.pi
impl = active("rope_frequencies", "rope_cos_sin", "apply_rope", "GroupedQueryAttention", "Block")


def turned(x, positions, base=10_000.0):
    """x (..., T, H) turned by the implementation under test; positions (T,)."""
    return impl.apply_rope(x, *impl.rope_cos_sin(positions, impl.rope_frequencies(x.shape[-1], base)))


# %% [markdown]
# ## What broke: the table ends
#
# A tiny model with a learned table of GPT-2's length, asked for its last position and for the one after it.

# %%
gpt2 = preset("gpt2-small")
small = LanguageModel(gpt2.but(L=1, V=100, D=16, N=2, K=2, H=8, ffn_dim=32, norm_position="post"), impl)
token = torch.zeros(1, 1, dtype=torch.long)
small(token, positions=torch.tensor([1_023]))
try:
    small(token, positions=torch.tensor([1_024]))
except ValueError as error:
    print("token 1,025:", error)
claim("parameters of GPT-2 small's table, T_max * D", gpt2.T_max * gpt2.D, 786_432)
claim("rows that it has, and the row that token 1,025 would need", [gpt2.T_max, 1_025], [1_024, 1_025])

# %% [markdown]
# ## The turn
#
# Four clocks, H = 8: four pairs. Each starts as a hand that points to the right, and is turned by the code under test to the
# positions 0 to 7. The first hand goes round once in about six tokens, the last one hardly moves.

# %%
T, H = 8, 8
hands = turned(torch.tensor([1.0, 0.0] * 4).expand(T, H), torch.arange(T)).view(T, 4, 2)
frequencies, circle = impl.rope_frequencies(H), torch.linspace(0, TAU, 100)
figure, axes = pictures(columns=4, width=15, height=4.4)
for pair, panel in enumerate(axes):
    for position in range(T):
        shade = 0.15 + 0.85 * position / (T - 1)
        x, y = hands[position, pair].tolist()
        panel.plot([0, x], [0, y], color=COLOURS["blue"], alpha=shade)
        if pair == 0 or pair == 1 and position in (0, T - 1):
            panel.text(1.22 * x, 1.22 * y, str(position), fontsize=16, ha="center", va="center")
    panel.plot(circle.cos(), circle.sin(), color=COLOURS["grey"], linewidth=1)
    panel.set(xlim=(-1.5, 1.5), ylim=(-1.5, 1.5), aspect="equal", xticks=[], yticks=[])
    panel.set_title(f"pair {pair}: {float(frequencies[pair]):.3g} a token")
    panel.grid(False)
show(figure)
claim("frequencies, H = 8, base 10,000", frequencies, [1, 0.1, 0.01, 0.001], within=1e-6)
claim("length of every hand after turning", float(hands.norm(dim=-1).max()), 1.0, within=1e-6)
claim("tokens in one turn of the first hand", TAU / float(frequencies[0]), 6.28, within=0.005)

# %% [markdown]
# ## Relative positions
#
# The pay-off: only the distance counts. One query and one key, H = 64, put at every pair of positions. Along each diagonal $n - m$ is the same, and so is the score.

# %%
generator = torch.Generator().manual_seed(2)
q, k = torch.randn(2, 64, generator=generator)
span = torch.arange(48)
scores = turned(q.expand(48, 64), span) @ turned(k.expand(48, 64), span).T / 64**0.5  # (T, S)

figure, (left, right) = pictures(columns=2, width=15, height=5.6)
image = left.imshow(scores, cmap="PuOr", vmin=-2.5, vmax=2.5)
left.set(xlabel="key position $m$ (S)", ylabel="query position $n$ (T)", title="One score on every diagonal")
left.grid(False)
figure.colorbar(image, ax=left, label="score")
for start, style in ((0, "-"), (5_000, ":")):
    keys = turned(k[None], torch.tensor([start]))
    distances = torch.arange(0, 120)
    line = turned(q.expand(120, 64), start + distances) @ keys[0] / 8
    right.plot(distances, line, style, color=COLOURS["blue" if start == 0 else "orange"], label=f"key at {start:,}")
right.legend(fontsize=17)
right.set(xlabel="distance $n - m$", ylabel="score", title="The same curve wherever it starts", ylim=(-0.5, 2.5))
show(figure)
claim("spread along the main diagonal", float(scores.diagonal().std()), 0.0, within=1e-5)
claim("spread over all positions", float(scores.std()), at_least=0.3)

# %% [markdown]
# ## 100 to 105 against 6,000 to 6,005
#
# Six random queries and keys, as if they were six words, put at two places in a long text.

# %%
Q, K = torch.randn(2, 6, 64, generator=generator)
here, there = (turned(Q, start + torch.arange(6)) @ turned(K, start + torch.arange(6)).T / 8 for start in (100, 6_000))
plain = Q @ K.T / 8
figure, axes = pictures(columns=3, width=15, height=5)
for panel, values, title in (
    (axes[0], here, "positions 100..105"), (axes[1], there, "positions 6,000..6,005"), (axes[2], plain, "no positions"),
):
    image = panel.imshow(values, cmap="PuOr", vmin=-2.5, vmax=2.5)
    panel.set(xlabel="key", ylabel="query", title=title)
    panel.grid(False)
figure.colorbar(image, ax=axes, label="score")
show(figure)
claim("largest difference between the two places", float((here - there).abs().max()), 0.0, within=2e-3)
claim("largest difference to no positions at all", float((here - plain).abs().max()), at_least=0.3)

# %% [markdown]
# A pattern learned at one place holds at every other one.
#
# ## Angles
#
# An angle is a position times a frequency, and positions are large. What is left over is fp32's rounding of angles near 6,000: in
# bf16 it would be a disaster, since bf16 cannot tell 257 from 256.

# %%
claim("257 in bf16", float(torch.tensor(257.0).bfloat16()), 256.0)


def moved_by_shift(dtype):
    """How much the scores move when all positions are shifted by 256 and kept in this dtype."""
    first, second = (
        turned(Q, positions) @ turned(K, positions).T / 8
        for positions in ((start + torch.arange(6.0)).to(dtype).float() for start in (0, 256))
    )
    return float((first - second).abs().max())


claim("positions in fp32, shifted by 256: scores move by", moved_by_shift(torch.float32), at_most=1e-3)
claim("positions rounded to bf16: scores move by", moved_by_shift(torch.bfloat16), at_least=0.3)

# %% [markdown]
# ## Positions by row
#
# The texts of a batch may stand at different positions (one is continued at 40 while another begins). Positions are then (B, T), the
# tables (B, T, H/2), and an axis is put in for the heads, (B, 1, T, H/2): every head of a row turns by that row's positions.

# %%
rows = torch.stack((torch.arange(6), 40 + torch.arange(6)))  # (B, T)
cos, sin = impl.rope_cos_sin(rows, impl.rope_frequencies(64))
together = impl.apply_rope(Q.expand(2, 3, 6, 64), cos[:, None], sin[:, None])  # (B, N, T, H)
claim("shape of the tables", list(cos.shape), [2, 6, 32])
claim("each row as if it were alone, largest difference",
      max(float((together[b] - turned(Q, rows[b])).abs().max()) for b in range(2)), 0.0, within=1e-5)

# %% [markdown]
# ## Frequencies
#
# Pair $i$ comes round every $2\pi / \theta_i$ tokens. A pair that has come round says the same for two distances. Llama 3
# raised the base from 10,000 to 500,000, so that the slowest pairs do not come round within 128k tokens.
#
# **Change and watch**: the base. Which pairs lie above the line, so that they tell any two distances apart?

# %%
CONTEXT = 131_072


def wavelengths(base):
    waves = TAU / impl.rope_frequencies(128, base)
    figure, axes = pictures()
    axes.semilogy(waves, "o", color=COLOURS["blue"], markersize=5)
    axes.axhline(CONTEXT, color=COLOURS["orange"])
    axes.text(0, CONTEXT * 1.4, "128k tokens", color=COLOURS["orange"], fontsize=18, fontweight="bold")
    slow = int((waves > CONTEXT).sum())
    axes.set(xlabel="pair $i$ (H = 128)", ylabel="tokens in one turn (log)", ylim=(3, 3e7))
    axes.set_title(f"base {base:,}: {slow} of 64 pairs turn less than once in 128k")
    return figure


base = watch(wavelengths, base=slider("base", [10_000, 100_000, 500_000, 1_000_000, 10_000_000], start=10_000))
llama2, llama3 = (TAU / impl.rope_frequencies(128, preset(name).rope_theta) for name in ("llama2-7b", "llama3-8b"))
claim("base 10,000: tokens in one turn of the slowest pair", float(llama2[-1]), 54_410, within=30)
claim("base 500,000: the same", float(llama3[-1]), 2_559_200, within=1_500)
claim("pairs slower than 128k, base 10,000", int((llama2 > CONTEXT).sum()), 0)
claim("pairs slower than 128k, base 500,000", int((llama3 > CONTEXT).sum()), 15)

# %% [markdown]
# ## Layouts
#
# Which two entries make a pair is a free choice, as long as queries and keys make the same one. Two are in use:

# %%
figure, axes = pictures(rows=2, height=1.9, width=13)
pairs = [COLOURS[name] for name in ("blue", "orange", "green", "purple")]
for panel, order, title in (
    (axes[0], [0, 0, 1, 1, 2, 2, 3, 3], "neighbours: RoFormer, Meta, GGUF, this course"),
    (axes[1], [0, 1, 2, 3, 0, 1, 2, 3], "halves: Hugging Face"),
):
    for entry, pair in enumerate(order):
        panel.barh(0, 0.94, left=entry, color=pairs[pair])
        panel.text(entry + 0.47, 0, f"pair {pair}", color="white", ha="center", va="center", fontsize=17, fontweight="bold")
    panel.set(xlim=(0, 8), yticks=[], xticks=[entry + 0.47 for entry in range(8)], xticklabels=range(8), title=title)
    panel.grid(False)
show(figure)
rows = torch.arange(8.0)[:, None]
claim("rows of a head in halves, reordered to neighbours", halves_to_neighbours(rows, 8), [0, 4, 1, 5, 2, 6, 3, 7])

# %% [markdown]
# Reordering queries and keys alike changes no dot product, so before the turn nobody can tell the layouts apart. Turn them,
# and the wrong layout pairs numbers that never belonged together. Shapes fit, position 0 is even right, nothing raises.
# What it costs a real model: SmolLM2's weights as they are, and with the rows of `w_q` and `w_k` put in halves.

# %%
real = smollm2(impl)
if real:
    tokens = torch.tensor([real.words.encode(TEXT[:600]).ids])
    with torch.no_grad():
        right = float(next_token_loss(real.model(tokens), tokens))
        for name, parameter in real.model.named_parameters():
            if name.endswith(("attn.w_q.weight", "attn.w_k.weight")):
                H = real.cfg.H
                heads = parameter.view(-1, H // 2, 2, real.cfg.D)  # a0 b0 a1 b1 ... -> a0 a1 ... b0 b1 ...
                parameter.copy_(heads.transpose(1, 2).reshape(parameter.shape))
        wrong = float(next_token_loss(real.model(tokens), tokens))
    figure, axes = pictures(height=3.2)
    bars = axes.barh(["rows in halves", "rows as neighbours"], [wrong, right], color=[COLOURS["orange"], COLOURS["blue"]])
    axes.bar_label(bars, fmt="%.2f", fontsize=19, padding=6)
    axes.set(xlabel="loss (nats a token)", title="SmolLM2-135M, same numbers, two orders of rows", xlim=(0, wrong * 1.15))
    show(figure)
    claim("loss with the right layout", right, 3.25, within=0.02)
    claim("loss with the wrong one", wrong, 4.79, within=0.02)
    claim("times as many choices", 2.718281828 ** (wrong - right), 4.7, within=0.15)

# %% [markdown]
# It still speaks English, only much worse: each word is a choice among 4.7 times as many. That is why this mistake is found so late.
#
# Only queries and keys are turned. Values carry content and stay as they are: `w_v` needs no reordering.
#
# ## Number formats
#
# Angles, cosines and sines are fp32, and stay fp32 where the model is bf16. What is turned keeps its own format: bf16 in, bf16 out, or
# the next product complains about two formats. And the turned copy is a copy: the input stays as it was.

# %%
x = torch.randn(3, 64, generator=generator).bfloat16()
before = x.clone()
assert turned(x, torch.arange(3)).dtype == torch.bfloat16
assert torch.equal(x, before)
print("bf16 in, bf16 out, and the input is as it was")

# %% [markdown]
#
# *A kind word on the lessons.* "RoPE extrapolates" means that a larger angle is well defined, where a table has no row. It
# does not mean that quality holds far past the trained length: notebook 10 measures how it falls, and what helps.
#
# ## When it goes wrong
#
# | symptom | cause | the test that says so |
# | --- | --- | --- |
# | a loaded model talks nonsense, shapes fit | halves for neighbours | `test_rope_pairs_neighbours` |
# | stored answers differ, relative scores are right | the turn goes the other way | `test_rope_turns_counter_clockwise` |
# | generation with a cache drifts | positions start at 0 at every step | `test_rope_cos_sin_uses_the_positions_it_is_given` |
# | fine up to a few hundred tokens, then worse | angles in bf16 | `test_rope_distinguishes_positions_above_256` |
# | scores depend on absolute positions | only queries are turned | `test_attention_turns_queries_and_keys_alike` |
# | one head differs from the next | positions run along heads | `test_rope_rotates_along_time_not_heads` |
# | content changes with position | values are turned too | `test_attention_leaves_values_alone` |
# | a Llama 3 model is slightly off everywhere | the base is fixed in the code | `test_rope_frequencies_use_the_configured_theta` |

# %% [markdown]
# ## Checkpoint
#
# <details><summary>Interview: how does RoPE make attention see relative position, and why does that help to extrapolate?</summary>
#
# Query and key are turned by their own positions; their dot product depends on the difference of the angles alone, $(n - m)\theta_i$
# in each pair. So a pattern holds wherever it stands. A position past the trained length is a larger angle, which is well
# defined, and quality falls gradually instead of hitting a missing row.
#
# </details>
#
# <details><summary>Interview: trained at 8k, served at 128k, quality collapses past 16k. Cause and cure?</summary>
#
# Distances that training never showed put the slow pairs at angles the model has never seen. Cures: position interpolation
# (positions scaled down), a larger base (NTK-aware), YaRN (by wavelength), each best with a short further training. Notebook 10.
#
# </details>
#
# <details><summary>How many parameters does RoPE have, and how many has GPT-2 small's table?</summary>
#
# None, and $1{,}024 \times 768 = 786{,}432$.
#
# </details>
#
# <details><summary>Why are some weights reordered when they are loaded, and why only w_q and w_k?</summary>
#
# Hugging Face pairs entry i with i + H/2, this course pairs 2i with 2i + 1. Rows of `w_q` and `w_k` make the entries that are
# turned, so they move (and so would their biases and the gains of QK-norm). Values are never turned.
#
# </details>
#
# <details><summary>Why did Llama 3 raise the base to 500,000?</summary>
#
# At base 10,000 and H = 128 the slowest pair comes round in about 54,400 tokens, so within 128k every pair says the same for
# some two distances. At 500,000 the slowest needs 2.6 million, and 15 of 64 pairs do not come round.
#
# </details>
