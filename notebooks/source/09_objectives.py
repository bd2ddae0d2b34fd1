# %% [markdown]
# # 09 What is the model asked? Four objectives
#
# **The question.** The same tokens, the same layers, the same arithmetic: why does one objective teach six times as much per
# forward pass as another? And what does each of them let a token see?
#
# | objective | model | who sees whom | what is asked |
# | --- | --- | --- | --- |
# | causal | GPT | all that came before | every next token |
# | masked | BERT | everybody | the 15% that were picked |
# | prefix | prefix LM | the prefix itself in both directions, then causal | what follows the prefix |
# | span corruption | T5 | encoder: everybody; decoder: causal, and the whole encoder | the spans that were cut out |

# %%
import torch

from nanolm.classroom import COLOURS, Characters, active, batches, claim, pictures, show, slider, watch
from nanolm.config import ModelConfig
from nanolm.model import LanguageModel

impl = active(
    "causal_mask", "causal_lm_loss", "z_loss", "masked_lm_corruption", "prefix_lm_mask", "prefix_lm_targets", "span_corruption",
    "Block", "GroupedQueryAttention",
)  # fmt: skip
IGNORED = -100

# %% [markdown]
# ## Who sees whom
#
# Rows are queries T, columns are keys S; a filled square means "may look". The orange lines part T5's encoder from its decoder.
# Masked LM and T5's encoder need no mask at all, which is why neither can write a text: a token that sees its successor has nothing to guess.

# %%
T, PREFIX = 10, 4
masks = {
    "causal": impl.causal_mask(T, T),
    "masked": torch.ones(T, T, dtype=torch.bool),
    f"prefix = {PREFIX}": impl.prefix_lm_mask(T, PREFIX),
}
ENCODER = 6  # span corruption: six tokens are read by the encoder, the decoder writes four
spans = torch.zeros(T, T, dtype=torch.bool)
spans[:ENCODER, :ENCODER] = True
spans[ENCODER:, :ENCODER] = True
spans[ENCODER:, ENCODER:] = impl.causal_mask(T - ENCODER, T - ENCODER)
masks["span (encoder | decoder)"] = spans


def draw_mask(axes, mask, title):
    axes.imshow(mask, cmap="Blues", vmin=0, vmax=1.25)
    axes.set_xticks(torch.arange(-0.5, mask.shape[1]), minor=True)
    axes.set_yticks(torch.arange(-0.5, mask.shape[0]), minor=True)
    axes.grid(False)
    axes.grid(True, which="minor", color="white", linewidth=2)
    axes.tick_params(which="both", length=0)
    axes.set(xlabel="key S", ylabel="query T", title=title, xticks=[0, mask.shape[1] - 1], yticks=[0, mask.shape[0] - 1])


figure, axes = pictures(columns=4, width=18, height=4.8)
for panel, (title, mask) in zip(axes, masks.items(), strict=True):
    draw_mask(panel, mask, title)
axes[3].axvline(ENCODER - 0.5, color=COLOURS["orange"], linewidth=4)
axes[3].axhline(ENCODER - 0.5, color=COLOURS["orange"], linewidth=4)
show(figure)
claim("squares: causal, masked, prefix", [int(mask.sum()) for mask in list(masks.values())[:3]], [55, 100, 61])
claim("a prefix of 0 is causal: squares that differ", int((impl.prefix_lm_mask(T, 0) != impl.causal_mask(T, T)).sum()), 0)

# %% [markdown]
# ## Signals: what the same 512 tokens teach
#
# One forward pass over 512 tokens. How many of its outputs carry a target?

# %%
T = 512
generator = torch.Generator().manual_seed(0)
tokens = torch.randint(4, 100, (1, T), generator=generator)
picked = torch.rand(1, T, generator=generator).argsort() < 77  # exactly the share: 77 of 512
noise = torch.where(picked, torch.rand(1, T, generator=generator) * 0.15, 0.5)
shown, targets = impl.masked_lm_corruption(tokens, noise, torch.randint(4, 100, (1, T)), mask_token=1)
prefix_targets = impl.prefix_lm_targets(tokens, T // 2)
starts = range(5, 505, 20)  # 25 spans of 3 tokens: 15%
cut, answer = impl.span_corruption(tokens[0], [(start, 3) for start in starts], torch.arange(200, 226))

signals = {
    "causal": T - 1,
    "masked, 15%": int((targets != IGNORED).sum()),
    "prefix of 256": int((prefix_targets != IGNORED).sum()),
    "span, 15%": 25 * 3,
}
figure, axes = pictures(height=4.2)
for row, count in enumerate(signals.values()):
    axes.barh(row, count, color=COLOURS["blue" if row == 0 else "orange"])
    axes.text(count + 6, row, f"{count} of {T}", va="center", fontsize=19, fontweight="bold")
axes.set_yticks(range(4), signals, fontsize=19)
axes.set(xlabel="tokens with a target, of T = 512", xlim=(0, 620))
axes.invert_yaxis()
show(figure)
claim("15% of 512", 0.15 * 512, 77, within=0.5)
claim("masked: targets", signals["masked, 15%"], 77)
claim("prefix of 256: targets", signals["prefix of 256"], 256)
claim("causal over masked, per token: 1 / 0.15", 1 / 0.15, 6.67, within=0.005)
claim("span corruption: the encoder reads, the decoder writes", [len(cut), len(answer)], [512 - 75 + 25, 75 + 26])

# %% [markdown]
# *A kind word on the lessons.* "T signals from T tokens" counts a next token after the last one. With T tokens in hand there are T - 1:
# 511 of 512. And "about six times as many" is 1 / 0.15 = 6.67.

# %% [markdown]
# ## One sentence, four exams
#
# The same sentence as each objective shows it. Grey is shown and not asked, orange is asked.

# %%
sentence = "the model reads what is there and says what comes next".split()
ids = torch.arange(len(sentence))
names = {**dict(enumerate(sentence)), 90: "[MASK]", 101: "<X>", 102: "<Y>", 103: "<Z>"}
noise = torch.full((1, len(ids)), 0.5)
noise[0, [3, 8]] = 0.01
shown, targets = impl.masked_lm_corruption(ids[None], noise, ids[None], mask_token=90)
prefix = impl.prefix_lm_targets(ids[None], 5)[0]
cut, answer = impl.span_corruption(ids, [(2, 2), (8, 1)], torch.tensor([101, 102, 103]))
rows = {
    "causal": (ids, ids > 0),
    "masked": (shown[0], targets[0] != IGNORED),
    "prefix": (ids, prefix != IGNORED),
    "span: encoder": (cut, cut < 0),
    "span: decoder": (answer, answer >= 0),
}
figure, axes = pictures(height=4.8, width=17)
for row, (line, asked) in enumerate(rows.values()):
    for place, (token, is_asked) in enumerate(zip(line.tolist(), asked.tolist(), strict=True)):
        colour = COLOURS["orange" if is_asked else "grey"]
        axes.text(place, row, names[token], ha="center", va="center", fontsize=18, color="white", fontweight="bold",
                  bbox={"boxstyle": "round,pad=0.3", "color": colour})
axes.set_yticks(range(len(rows)), rows, fontsize=19)
axes.set(xlim=(-0.6, 10.6), ylim=(4.6, -0.6), xticks=[])
axes.grid(False)
show(figure)
claim("asked: causal, masked, prefix", [int(asked.sum()) for _, asked in list(rows.values())[:3]], [10, 2, 6])
claim("the decoder's answer", answer, [101, 2, 3, 102, 8, 103])

# %% [markdown]
# ### Causal LM
#
# The output at position t is asked for token t + 1, so logits and tokens are shifted against each other by one, row by row. The loss is the mean over
# the targets that count, in at least fp32: -log softmax(logits)[target]. Four checks that any right loss passes: blind logits cost log V, ignored
# targets change nothing, nothing asked costs 0, and whoever is sure of the right successor pays nearly 0.

# %%
V = 11
line = torch.arange(V)[None]  # (B, T) = (1, 11): every token once
sure = 50.0 * torch.nn.functional.one_hot((line + 1) % V, V).float()  # at t: certain that t + 1 comes next
hidden = line.clone()
hidden[:, 6:] = IGNORED
claim("blind logits cost log V", float(impl.causal_lm_loss(torch.zeros(1, V, V), line)), 2.398, within=0.001)
claim("sure of the successor", float(impl.causal_lm_loss(sure, line)), at_most=1e-4)
claim("sure of the token that was just read", float(impl.causal_lm_loss(sure.roll(1, dims=1), line)), at_least=40)
claim("half of the targets ignored, blind: the mean stays", float(impl.causal_lm_loss(torch.zeros(1, V, V), hidden)), 2.398, within=0.001)
claim("nothing asked", float(impl.causal_lm_loss(sure, torch.full_like(line, IGNORED))), 0)

# %% [markdown]
# ### Masked LM
#
# 15% of the places are picked, and only they are asked, each for its own token: no shift. What is shown at a picked place: mostly [MASK] (80%),
# sometimes a random token (10%), sometimes the token itself (10%), so that the model can't know which of the words before it are true.

# %%
N = 20_000
many = torch.full((1, N), 7)
uniform = torch.rand(1, N, generator=generator)
shown, targets = impl.masked_lm_corruption(many, uniform, torch.full((1, N), 9), mask_token=1)
asked = targets != IGNORED
shares = {
    "[MASK]": float((shown[asked] == 1).float().mean()),
    "a random token": float((shown[asked] == 9).float().mean()),
    "the token itself": float((shown[asked] == 7).float().mean()),
}
claim("picked", float(asked.float().mean()), 0.15, within=0.01)
claim("of these: [MASK], random, itself", list(shares.values()), [0.8, 0.1, 0.1], within=0.02)
claim("tokens changed that were not picked", int((shown != many)[~asked].sum()), 0)

# %% [markdown]
# ### Prefix LM
#
# The prefix is read in both directions and never asked. The first token behind it is: its prediction comes from the prefix's last position, after the
# loss's own shift. The mask opens the square of the prefix and leaves the rest causal.

# %%
opened = impl.prefix_lm_mask(8, 3) & ~impl.causal_mask(8, 8)
claim("squares that the prefix opens: 3 * 2 / 2", int(opened.sum()), 3)
claim("all of them inside the prefix", int(opened[:3, :3].sum()), 3)
claim("asked, with a prefix of 3 of 8", impl.prefix_lm_targets(torch.arange(8)[None], 3)[0], [IGNORED] * 3 + [3, 4, 5, 6, 7])

# %% [markdown]
# ### Span corruption
#
# Each span is cut out and one sentinel stands for it, whatever the span's length. The decoder writes each sentinel with what stood there, and one more
# sentinel to say that it is done.

# %%
letters = torch.arange(10)
cut, answer = impl.span_corruption(letters, [(1, 3), (6, 2)], torch.tensor([100, 101, 102]))
claim("the encoder reads", cut, [0, 100, 4, 5, 101, 8, 9])
claim("the decoder writes", answer, [100, 1, 2, 3, 101, 6, 7, 102])
claim("nothing is lost: letters in both together", sorted(t for t in [*cut.tolist(), *answer.tolist()] if t < 100), list(range(10)))

# %% [markdown]
# ## Shown: what signals buy
#
# The same model, the same text, the same number of steps. One run asks for every next token, the other for 15% of them: as if
# a causal model had masked LM's number of signals. (A real masked LM also sees both sides, and its loss is another one. Here only the number of
# signals differs.)

# %%
text = Characters()


def train_with(rate, steps=120, seed=0):
    torch.manual_seed(seed)
    cfg = ModelConfig(L=2, V=text.V, D=32, N=4, K=2, ffn_dim=88, T_max=32, tie_embeddings=True)
    model = LanguageModel(cfg, impl)
    optimizer, losses = torch.optim.AdamW(model.parameters(), lr=3e-3), []
    chance = torch.Generator().manual_seed(seed)
    for _, batch in zip(range(steps), batches(text.tokens, B=2, T=32), strict=False):
        logits = model(batch)
        asked = torch.where(torch.rand(batch.shape, generator=chance) < rate, batch, IGNORED)
        loss = impl.causal_lm_loss(logits, asked)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            losses.append(float(impl.causal_lm_loss(logits, batch)))  # always judged on every token
    return torch.tensor(losses)


runs = {"every token": train_with(1.0), "15% of them": train_with(0.15)}
figure, axes = pictures(height=4.8)
for (name, losses), colour in zip(runs.items(), ("blue", "orange"), strict=True):
    smooth = losses.unfold(0, 15, 1).mean(dim=1)
    axes.plot(range(15, 15 + len(smooth)), smooth, color=COLOURS[colour])
    axes.text(123, smooth[-1], f"{name}\n{smooth[-1]:.2f}", color=COLOURS[colour], va="center", fontsize=18, fontweight="bold")
axes.set(xlabel="step", ylabel="loss on all tokens (nats)", xlim=(10, 150))
axes.set_title("The same arithmetic, 6.67 times the signals")
show(figure)
ends = [float(losses[-15:].mean()) for losses in runs.values()]
claim("loss at the end: 15% of the signals minus all of them", ends[1] - ends[0], at_least=0.02)

# %% [markdown]
# ## Change and watch: where does the prefix end?
#
# Slide the prefix from 0 (a causal LM) to 9. What the mask gains in sight, the loss loses in targets.


# %%
def prefix_picture(prefix):
    figure, (left, right) = pictures(columns=2, width=12, height=4.6)
    draw_mask(left, impl.prefix_lm_mask(10, prefix), f"prefix = {prefix}")
    targets = impl.prefix_lm_targets(torch.arange(10)[None], prefix)
    count = int((targets[0, 1:] != IGNORED).sum())  # the first token has nobody before it
    sight = float(impl.prefix_lm_mask(10, prefix).float().mean())
    right.bar(["sight", "targets"], [sight, count / 10], color=[COLOURS["blue"], COLOURS["orange"]])
    right.set(ylim=(0, 1.05), ylabel="share")
    right.set_title(f"{count} targets of 10 tokens")
    right.tick_params(axis="x", labelsize=19)
    return figure


moved = watch(prefix_picture, prefix=slider("prefix", list(range(10)), start=4))

# %% [markdown]
# ## Why decoder-only won
#
# Wang et al. (2022) trained the variants at equal compute: plain next-token prediction on a causal decoder gave the best zero-shot results. Every token is
# a signal; there is one stack, one mask, one loss; the cache of notebook 05 needs nothing else; and what is sold is text, which is what it was trained to make.
#
# ## When it goes wrong
#
# | symptom | cause | the test that says so |
# | --- | --- | --- |
# | the loss falls to nearly 0 at once | not shifted: each token predicts itself | `test_objectives_loss_predicts_the_next_token` |
# | the last token of one text predicts the first of another | shifted after flattening | `test_objectives_loss_does_not_cross_rows` |
# | the loss gets smaller with more padding | ignored targets are counted in the mean | `test_objectives_loss_ignores_masked_targets` |
# | NaN where nothing is asked | 0 / 0 | `test_objectives_loss_without_targets_is_zero` |
# | masked LM fails on real text | [MASK] only, never a random or a true token | `test_objectives_masked_shows_masks_random_tokens_and_the_token` |
# | a prefix model cheats | the rest sees ahead too | `test_objectives_prefix_mask_opens_the_prefix` |
# | the answer can't be read | no sentinel between the spans | `test_objectives_spans_become_sentinels` |

# %% [markdown]
# ## Checkpoint
#
# <details><summary>How many signals do 512 tokens give: causal, masked at 15%, prefix of 256?</summary>
#
# 511 (512 with a token that follows the last), about 77, and 256. Per token, causal has 1 / 0.15 = 6.67 times as many as masked.
#
# </details>
#
# <details><summary>Why can a masked LM not write a text?</summary>
#
# Every token sees every other, so it only learned to fill holes with both sides in view. At generation there is no right side, and
# [MASK], which training is full of, never comes.
#
# </details>
#
# <details><summary>Interview: why did decoder-only models win for generation?</summary>
#
# At equal compute they get a signal from every token; one stack and one mask scale cleanly (cache, parallelism); no mismatch between training and use;
# and tasks of understanding can be asked as text.
#
# </details>
#
# <details><summary>What makes it legal that all positions are trained in one pass?</summary>
#
# The causal mask: position t can't see t + 1, so its target is not in its input. Take the mask away and the loss goes to 0 while nothing is learned.
#
# </details>
#
# <details><summary>In span corruption, what does the decoder write for two spans?</summary>
#
# First sentinel, first span, second sentinel, second span, and one last sentinel that says it is done.
#
# </details>
