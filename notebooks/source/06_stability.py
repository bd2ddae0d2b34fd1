# %% [markdown]
# # 06 Stability: four guardrails
#
# **The question.** A large run has been fine for weeks. Then the loss jumps within a few steps and does not come back. Nothing in
# the code changed. What grew, without anybody asking for it, and which cheap rail would have held it?
#
# | what may grow | what it breaks | the rail |
# | --- | --- | --- |
# | sizes of queries and keys | the softmax of attention saturates, its gradient dies | QK-norm, or a soft-cap |
# | biases | one more thing that drifts | no biases |
# | log Z of the output softmax | rounding in bf16 | z-loss |
#
# None of them changes what the model can say. They keep the optimizer where its steps mean something.

# %%
import torch

from nanolm.classroom import (
    COLOURS, Characters, active, claim, label_lines, next_token_loss, pictures, show, slider, smollm2, train, watch,
)
from nanolm.config import ModelConfig, preset
from nanolm.recipe.ledger import parameters
from nanolm.model import LanguageModel

BARE, NORMED, CAPPED = COLOURS["orange"], COLOURS["blue"], COLOURS["green"]
impl = active("GroupedQueryAttention", "softcap", "z_loss", "RMSNorm", "Block")

# %% [markdown]
# ## QK-norm
#
# What broke: projections grow, the softmax saturates. One head over T = 32 tokens, through the attention under test. The values are set so that its output *is* the row of attention
# weights: token s carries a 1 in place s. Then `w_q` and `w_k` are multiplied by a factor, as if training had let them grow.

# %%
T, H, D = 32, 32, 64
content = torch.randn(T, 32, generator=torch.Generator().manual_seed(3))
x = torch.cat((content, torch.eye(T)), dim=-1)[None]  # (1, T, D): what a token says, and which one it is
no_turn = torch.ones(T, H // 2), torch.zeros(T, H // 2)


def head(growth, **rails):
    """One attention head whose query and key projections have grown; its output is its weights."""
    torch.manual_seed(0)
    attention = impl.GroupedQueryAttention(ModelConfig(L=1, V=9, D=D, N=1, K=1, H=H, ffn_dim=9, **rails))
    w_q, w_k = torch.randn(2, H, 32) / 32**0.5
    nothing = torch.zeros(H, 32)
    weights = {
        "w_q.weight": growth * torch.cat((w_q, nothing), dim=1),
        "w_k.weight": growth * torch.cat((w_k, nothing), dim=1),
        "w_v.weight": torch.cat((nothing, torch.eye(H)), dim=1),
        "w_o.weight": torch.cat((torch.eye(H), nothing.T), dim=0),
    }
    attention.load_state_dict(weights, strict=False)
    return attention


RAILS = {"bare": {}, "QK-norm": {"qk_norm": True}, "soft-cap 50": {"attn_softcap": 50.0}}


def weights_of(growth, rail):
    """(T, T): who attends to whom."""
    return head(growth, **RAILS[rail])(x, *no_turn)[0, :, :T].detach()


def maps(growth):
    figure, axes = pictures(columns=3, width=15, height=5)
    for panel, rail in zip(axes, RAILS, strict=True):
        image = panel.imshow(weights_of(growth, rail).sqrt(), cmap="cividis", vmin=0, vmax=1)
        panel.set(xlabel="key (S)", ylabel="query (T)", title=rail)
        panel.grid(False)
    figure.colorbar(image, ax=axes, label="weight (root)")
    figure.suptitle(f"projections grown {growth} times", fontsize=18)
    return figure


grown = watch(maps, growth=slider("growth of w_q and w_k", [1, 2, 4, 8, 16], start=8))

# %% [markdown]
# **Change and watch.** At 1 the three look alike. Scores grow with the *square* of the factor, since both sides grow, and without
# a rail each query soon looks at a single key. Such a softmax has no slope left: whatever it looks at, it cannot learn to look
# elsewhere.

# %%
growths = [2 ** (step / 2) for step in range(0, 11)]
sharp, slope = {}, {}
for rail in RAILS:
    rows = torch.stack([weights_of(growth, rail)[T // 2 :] for growth in growths])  # the later half of the queries
    sharp[rail] = rows.max(dim=-1).values.mean(dim=-1)
    slope[rail] = (rows * (1 - rows)).sum(dim=-1).mean(dim=-1)  # the softmax's derivative, summed over its diagonal

figure, (left, right) = pictures(columns=2, width=15, height=5.2)
for rail, colour in zip(RAILS, (BARE, NORMED, CAPPED), strict=True):
    left.semilogx(growths, sharp[rail], color=colour, label=rail, base=2)
    right.semilogx(growths, slope[rail], color=colour, label=rail, base=2)
for panel in (left, right):
    panel.set_xlabel("growth of w_q and w_k (log)")
    panel.set_xticks([1, 2, 4, 8, 16, 32], [1, 2, 4, 8, 16, 32])
    panel.set_ylim(0, 1.05)
left.set(ylabel="largest weight of a row", title="How sharp attention gets")
right.set(ylabel=r"slope of the softmax, $\sum a(1 - a)$", title="What is left to learn with")
left.legend(fontsize=17)
show(figure)
claim("bare: largest weight, grown 32 times", float(sharp["bare"][-1]), at_least=0.97)
claim("bare: slope left, grown 32 times", float(slope["bare"][-1]), at_most=0.05)
claim("QK-norm: largest change of the largest weight", float(sharp["QK-norm"].max() - sharp["QK-norm"].min()), at_most=1e-3)
claim("QK-norm: slope left, grown 32 times", float(slope["QK-norm"][-1]), at_least=0.8)

# %% [markdown]
# QK-norm norms each head's query and key just before the product (and before RoPE), so a score is at most $\sqrt H$ times the
# gains, whatever the projections drift to. The gains are learned, so the model may still choose to be sharp. It costs two gains of H a layer.
#
# ## Soft-capping
#
# $$\text{softcap}(z) = c \tanh(z / c)$$
#
# Nearly the identity while $|z|$ is small against c, and never beyond c. Gemma 2 caps attention at 50 and the final logits at 30.

# %%
z = torch.linspace(-220, 220, 441)
figure, axes = pictures()
axes.plot(z, z, ":", color=COLOURS["grey"], linewidth=2)
for cap, colour in ((50.0, CAPPED), (30.0, COLOURS["purple"])):
    axes.plot(z, impl.softcap(z, cap), color=colour, label=f"cap {cap:.0f}")
for point in (10.0, 200.0):
    value = float(impl.softcap(torch.tensor(point), 50.0))
    axes.plot(point, value, "o", color=CAPPED, markersize=12)
    axes.annotate(f"{point:.0f} → {value:.2f}", (point, value), xytext=(-30, 16), textcoords="offset points", fontsize=17)
axes.set(xlabel="score before", ylabel="score after", ylim=(-75, 85), xlim=(-225, 270), title="Small scores stay, none passes the cap")
label_lines(axes)
show(figure)
claim("10, capped at 50", float(impl.softcap(torch.tensor(10.0), 50.0)), 9.87, within=0.005)
claim("200, capped at 50", float(impl.softcap(torch.tensor(200.0), 50.0)), 49.97, within=0.005)
claim("Gemma 2's caps", [preset("gemma2-2b").attn_softcap, preset("gemma2-2b").final_softcap], [50.0, 30.0])

# %% [markdown]
# The cap stands after the scale and *before* the mask: capped after it, the mask's $-\infty$ would become $-c$, and hidden tokens
# would be seen again.
#
# Look at the green lines once more. A cap of 50 lets attention get sharp first (a score of 50 is plenty), and beyond it the best
# keys all stand at the cap, where they tie: attention blurs again, and tanh has no slope of its own there. The cap bounds
# the damage. QK-norm removes the cause.
#
# ## No biases
#
# A bias on the keys adds the same amount, $q \cdot b$, to every score of a row, and the softmax does not see it. So nothing in the loss holds it:
# its gradient is zero, but for rounding, and it goes where noise takes it. Biases are also few:

# %%
attention = impl.GroupedQueryAttention(ModelConfig(L=1, V=9, D=D, N=2, K=2, H=H, ffn_dim=9, bias=True, positions="learned"))
(attention(x, *no_turn) * torch.randn(1, T, D, generator=torch.Generator().manual_seed(0))).sum().backward()
pulls = {name: float(attention.get_parameter(f"{name}.bias").grad.norm()) for name in ("w_q", "w_k", "w_v", "w_o")}
with_bias, without = (parameters(preset("gpt2-small").but(bias=bias), impl).total for bias in (True, False))

figure, axes = pictures(height=3.8)
bars = axes.bar([f"{name}.bias" for name in pulls], pulls.values(), color=[NORMED, BARE, NORMED, NORMED])
axes.bar_label(bars, fmt="%.1e", fontsize=17, padding=4)
axes.set(ylabel="gradient (log)", yscale="log", ylim=(1e-7, 1e4), title="Nothing in the loss holds the bias of the keys")
show(figure)
claim("gradient of the key bias over that of the query bias", pulls["w_k"] / pulls["w_q"], at_most=1e-4)
claim("biases of GPT-2 small, of LayerNorm too", with_bias - without, 102_144)
claim("their share of the model, percent", 100 * (with_bias - without) / with_bias, 0.08, within=0.005)

# %% [markdown]
# ## z-loss
#
# Cross entropy is $\log Z - z_{target}$ with $Z = \sum_v e^{z_v}$. Add 10 to every logit: $\log Z$ grows by 10, the loss stays. So
# nothing holds log Z. The z-loss does: $\lambda (\log Z)^2$. PaLM took $\lambda = 10^{-4}$ over a very long run. We have a hundred
# and fifty steps, so here it is $10^{-2}$.

# %%
text, drift, losses = Characters(), {}, {}
for name, coefficient in (("without", 0.0), ("z-loss", 1e-2)):

    def objective(logits, tokens, coefficient=coefficient):
        loss = next_token_loss(logits, tokens)
        return loss + impl.z_loss(logits, coefficient) if coefficient else loss

    def note(step, logits, batch, name=name):
        drift[name].append(float(logits.logsumexp(dim=-1).mean()))
        losses[name].append(float(next_token_loss(logits, batch)))

    drift[name], losses[name] = [], []
    torch.manual_seed(0)
    model = LanguageModel(ModelConfig(L=1, V=text.V, D=48, N=4, K=2, ffn_dim=96, T_max=32), impl)
    train(model, text.tokens, steps=150, B=8, rate=1e-2, loss=objective, each_step=note)

figure, (left, right) = pictures(columns=2, width=15, height=5)
for name, colour in (("without", BARE), ("z-loss", NORMED)):
    left.plot(drift[name], color=colour, label=name)
    right.plot(torch.tensor(losses[name]).unfold(0, 10, 1).mean(dim=1), color=colour, label=name)
left.axhline(0, color=COLOURS["black"], linewidth=1)
left.set(xlabel="step", ylabel=r"$\log Z$, mean", title=r"$\log Z$ drifts, or comes home", xlim=(0, 190))
right.set(xlabel="step", ylabel="cross entropy (nats)", title="The same model quality", xlim=(0, 150))
label_lines(left)
right.legend(fontsize=17)
show(figure)
claim("log Z at the first step is about log V", drift["without"][0], torch.tensor(float(text.V)).log().item(), within=0.3)
claim("without: log Z after training", drift["without"][-1], at_least=4.5)
claim("with z-loss: log Z after training", drift["z-loss"][-1], at_most=1.5)
claim("what it costs in cross entropy, last 20 steps",
      sum(losses["z-loss"][-20:]) / 20 - sum(losses["without"][-20:]) / 20, at_most=0.15)

# %% [markdown]
# ## Starting values
#
# Stability begins before the first step. A fresh matrix whose entries have standard deviation $1/\sqrt{D}$ keeps the size of what it
# multiplies. Take $1/D$ (a variance for a standard deviation) and each layer shrinks its input to nothing; take 1 and it explodes. A fresh
# model that knows nothing should put every token at $1/V$: its first loss is about $\log V$.

# %%
deep = {}
for name, spread in (("1", 1.0), (r"$1/\sqrt{D}$", 256**-0.5), (r"$1/D$", 1 / 256)):
    signal, generator = torch.randn(64, 256, generator=torch.Generator().manual_seed(0)), torch.Generator().manual_seed(1)
    deep[name] = [1.0]
    for _ in range(8):
        signal = signal @ (spread * torch.randn(256, 256, generator=generator))
        deep[name].append(float(signal.pow(2).mean().sqrt()))
figure, axes = pictures(height=4.2)
for (name, sizes), colour in zip(deep.items(), (BARE, NORMED, COLOURS["purple"]), strict=True):
    axes.semilogy(sizes, "o-", color=colour, label=name)
label_lines(axes)
axes.set(xlabel="matrices passed", ylabel="size (log)", xlim=(0, 9), title="Standard deviation of a fresh matrix, D = 256")
show(figure)
claim("size after 8 matrices of 1 / sqrt(D)", deep[r"$1/\sqrt{D}$"][-1], 1.0, within=0.3)
claim("first loss of the model above, and log V", losses["without"][0], float(torch.tensor(float(text.V)).log()), within=0.3)

# %% [markdown]
# ## Why a large log Z hurts: bf16
#
# bf16 has 8 bits of mantissa. Between 16 and 32 its neighbours are 0.125 apart, at 200 they are 1 apart: probabilities that
# differ by $e$ look the same. SmolLM2's own logits, on a sentence:

# %%
sizes = torch.logspace(0, 9, 400, base=2)
steps = torch.tensor([2.0 ** (int(size.log2()) - 7) for size in sizes])
figure, axes = pictures()
axes.loglog(sizes, steps, color=COLOURS["black"], base=2)
axes.set(xlabel="size of a logit (log)", ylabel="step of bf16", title="The larger the logit, the coarser its steps")
real = smollm2(impl)
if real:
    tokens = torch.tensor([real.words.encode("When nobody watches it, the normaliser goes for a walk.").ids])
    with torch.no_grad():
        logits = real.model(tokens)[0]
    log_z = logits.logsumexp(dim=-1)
    low, high = float(log_z.min()), float(log_z.max())
    axes.axvspan(low, high, color=NORMED, alpha=0.3)
    axes.text(low * 0.97, 1.2, "log Z of\nSmolLM2", color=NORMED, fontsize=18, fontweight="bold", ha="right", va="top")
axes.set_xticks([1, 4, 16, 64, 256], [1, 4, 16, 64, 256])
axes.set_yticks([1 / 128, 1 / 32, 1 / 8, 1 / 2, 2], ["0.008", "0.031", "0.125", "0.5", "2"])
show(figure)
claim("bf16: what 16.0625 becomes", float(torch.tensor(16.0625).bfloat16()), 16.0)
claim("bf16: what 200.4 becomes", float(torch.tensor(200.4).bfloat16()), 200.0)
if real:
    claim("SmolLM2: mean log Z on this sentence", float(log_z.mean()), at_least=5, at_most=60)

# %% [markdown]
# ## When it goes wrong
#
# | symptom | cause | the test that says so |
# | --- | --- | --- |
# | QK-norm is on and scores grow all the same | the norm stands after the product, or on one side only | `test_qknorm_makes_the_size_of_projections_irrelevant` |
# | a loaded Qwen 3 is off | one norm over all heads | `test_qknorm_is_per_head` |
# | close, but not the stored answer | the norm stands after RoPE | `test_qknorm_comes_before_rope` |
# | hidden tokens are seen | the cap stands after the mask | `test_softcap_is_applied_before_the_mask` |
# | the cap bites far too early | the cap stands before the scale | `test_softcap_is_applied_after_the_scale` |
# | padding changes the z-loss | masked positions are counted | `test_objectives_zloss_counts_masked_positions_only` |
# | biases in the state dict | `bias=False` forgotten | `test_attention_has_the_parameters_of_the_contract`, `test_swiglu_has_no_bias` |

# %% [markdown]
# ## Checkpoint
#
# <details><summary>Interview: what do QK-norm and z-loss each prevent, and why do they cost next to nothing?</summary>
#
# QK-norm bounds the scores of attention by the learned gains, so the softmax cannot saturate because projections grew. z-loss keeps
# the normaliser of the output softmax near 1, which matters in bf16. Neither changes what the model can represent: two small norms a
# layer, one extra term in the loss.
#
# </details>
#
# <details><summary>Why does a saturated softmax stop learning?</summary>
#
# Its derivative is $a_s(\delta_{st} - a_t)$: with one weight at 1 and the others at 0 every entry is 0.
#
# </details>
#
# <details><summary>Projections grow three times. What happens to the scores, bare and with QK-norm?</summary>
#
# Nine times, because query and key both grow. With QK-norm nothing.
#
# </details>
#
# <details><summary>Soft-cap or QK-norm: what would you choose, and what is the catch of the other?</summary>
#
# QK-norm removes the cause and fused attention kernels need not know about it. The cap is one line, but a kernel has to support it, and
# scores near the cap are squeezed together. OLMo 2, Qwen 3 and Gemma 3 take QK-norm.
#
# </details>
#
# <details><summary>Why does cross entropy not hold log Z by itself?</summary>
#
# It depends on differences of logits only: a constant added to all of them cancels.
#
# </details>
#
# <details><summary>Biases are under a thousandth of GPT-2. Why drop them?</summary>
#
# Not for size. They are one more thing that can drift (a key bias has no gradient at all), and leaving them out made
# large runs steadier at no cost in quality.
#
# </details>
