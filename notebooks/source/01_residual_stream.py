# %% [markdown]
# # 01 The residual stream, and where the norm goes
#
# **The question.** In 2017 a norm stood *on* the residual stream, after every addition. Six layers trained well,
# thirty did not, unless the learning rate was warmed up with great care. What broke, and why does moving the norm
# a few centimetres in the drawing repair it?
#
# The letters of the week: B batch, L layers, T query length, S key length, V vocabulary, D width, H head size, F FFN width,
# N query heads, K key/value heads, G = N / K query heads to each key/value head.
#
# The stream is a tensor of (B, T, D) that every layer reads and adds to. Layer $l$ computes $f_l$:
#
# | placement | one layer | what stands on the path of the gradient |
# | --- | --- | --- |
# | post-norm (2017) | $x_{l+1} = \text{Norm}(x_l + f_l(x_l))$ | a norm for every addition |
# | pre-norm (since GPT-2) | $x_{l+1} = x_l + f_l(\text{Norm}(x_l))$ | nothing |

# %%
import torch

from nanolm.classroom import (
    COLOURS, Characters, active, batches, claim, gradient_norms, label_lines, pictures, show, slider, smollm2, streams,
    train, watch,
)
from nanolm.config import ModelConfig
from nanolm.model import LanguageModel

PRE, POST = COLOURS["blue"], COLOURS["orange"]
impl = active("RMSNorm", "SwiGLU", "apply_rope", "GroupedQueryAttention", "Block")

# %% [markdown]
# ## What a toll costs
#
# A notebook goes through the hands of L authors. If the whole page is copied after each of them and the copy keeps
# 90% of the ink, how much of the first line is left after 32 copies? The error signal travels the same way back.

# %%
layers = range(33)
figure, axes = pictures()
for kept, colour in ((1.0, PRE), (0.95, COLOURS["green"]), (0.9, POST)):
    axes.plot(layers, [kept**layer for layer in layers], color=colour, label=f"{kept:.2f} a layer")
label_lines(axes)
axes.set(xlabel="layers passed", ylabel="what is left", xlim=(0, 38), title="A small toll, paid at every layer")
show(figure)
claim("0.9 to the 32nd", 0.9**32, 0.034, within=0.0005)

# %% [markdown]
# ## The gradient's path
#
# We build the same stack twice, around the implementation under test, and cut every branch off from the gradient:
# what arrives at the bottom has come along the stream alone. In formulas, the Jacobian of a pre-norm layer is
#
# $$\frac{\partial x_{l+1}}{\partial x_l} = I + \frac{\partial f_l}{\partial x_l}$$
#
# and the cut leaves the $I$. A post-norm layer multiplies that $I$ by the norm's own Jacobian, about
# 1 over the RMS of $x + f(x)$, twice a layer.


# %%
text = Characters()


def stack(position, L=16, seed=0):
    """A small language model whose matrices all keep the size of what they multiply."""
    torch.manual_seed(seed)
    cfg = ModelConfig(L=L, V=text.V, D=32, N=4, K=2, ffn_dim=96, T_max=32, norm_position=position)
    model = LanguageModel(cfg, impl)
    for name, parameter in model.named_parameters():
        if "blocks" in name and parameter.dim() == 2:
            torch.nn.init.normal_(parameter, std=parameter.shape[1] ** -0.5)
    torch.nn.init.normal_(model.embed.weight)
    return model


def left_on_the_stream(model, tokens):
    """The gradient's norm on the stream after each block, with all branches cut, over that at the top."""
    for block in model.blocks:
        block.attn.register_forward_hook(lambda module, inputs, output: output.detach())
        block.ffn.register_forward_hook(lambda module, inputs, output: output.detach())
    kept = []
    for block in model.blocks:
        block.register_full_backward_hook(lambda module, into, out: kept.append(float(out[0].norm())))
    upstream = torch.randn(*tokens.shape, model.cfg.D, generator=torch.Generator().manual_seed(0))
    top = {}
    model.blocks[-1].register_forward_hook(lambda module, inputs, output: top.update(x=output))
    model(tokens)
    (top["x"] * upstream).sum().backward()
    return [value / kept[0] for value in kept]


batch = next(batches(text.tokens, B=4, T=32))
pre_left = left_on_the_stream(stack("pre", L=32), batch)
post_left = left_on_the_stream(stack("post", L=32), batch)

figure, axes = pictures()
axes.semilogy(pre_left, color=PRE, label="pre-norm")
axes.semilogy(post_left, color=POST, label="post-norm")
label_lines(axes)
axes.set(xlabel="layers passed on the way back", ylabel="gradient left (log)", xlim=(0, 37))
axes.set_title("The stream alone: a free path, or a toll at every layer")
show(figure)
claim("pre-norm, left after 31 layers", pre_left[-1], 1.0, within=1e-5)
claim("post-norm, left after 31 layers", post_left[-1], at_most=0.03)

# %% [markdown]
# Here a layer's toll is harsher than 0.9, because at the start each branch is about as large as the stream: the RMS of
# $x + f(x)$ is near $\sqrt 2$ and the norm divides by it. The branches carry gradient as well, so this is not yet the
# whole gradient. Next we look at all of it.
#
# **Change and watch.** How deep may a stack be before the toll hurts?


# %%
def toll(L):
    figure, axes = pictures()
    for position, colour in (("pre", PRE), ("post", POST)):
        left = left_on_the_stream(stack(position, L=L), batch)[-1]
        axes.barh(f"{position}-norm", left, color=colour)
        axes.text(left * 1.15, f"{position}-norm", f"{left:.2g}", va="center", fontsize=18)
    axes.set(xscale="log", xlim=(1e-11, 30), xlabel="gradient left at the bottom (log)", title=f"L = {L} layers")
    return figure


depth = watch(toll, L=slider("L", [2, 4, 8, 16, 32], start=8))

# %% [markdown]
# ## Where the norm goes
#
# Both stacks have 16 layers, the same first weights, the same text and the same constant learning rate: no warmup.
# Before and after we look at the gradient in every layer's weights.

# %%
runs = {}
for position in ("pre", "post"):
    model = stack(position)
    at_first = gradient_norms(model, batch)
    losses = train(model, text.tokens, steps=90, B=4, rate=3e-3)
    runs[position] = {"losses": losses, "first": at_first, "last": gradient_norms(model, batch), "model": model}

figure, (left, right) = pictures(columns=2, width=15, height=5)
for position, colour in (("pre", PRE), ("post", POST)):
    losses = torch.tensor(runs[position]["losses"])
    left.plot(losses.unfold(0, 10, 1).mean(dim=1), color=colour, label=f"{position}-norm")
    right.semilogy(runs[position]["last"], color=colour)
    beside = {"xytext": (0, 14), "textcoords": "offset points", "color": colour, "fontsize": 16, "fontweight": "bold"}
    right.annotate(f"{position}-norm", (5, runs[position]["last"][5]), **beside)
    right.semilogy(runs[position]["first"], color=colour, linestyle=":")
left.set(xlabel="step", ylabel="loss (nats a letter)", title="Same text, same rate, no warmup", xlim=(0, 112))
right.set(xlabel="layer $l$", ylabel="gradient norm (log)", title="Dotted: at first. Solid: after 90 steps")
label_lines(left)
show(figure)

final = {position: sum(run["losses"][-20:]) / 20 for position, run in runs.items()}
claim("pre-norm, loss of the last 20 steps", final["pre"], at_most=2.5)
claim("post-norm, loss of the last 20 steps", final["post"], at_least=2.75)
ratio = {position: sum(run["last"][-4:]) / sum(run["last"][:4]) for position, run in runs.items()}
claim("post-norm after training: gradient of the top four layers over the bottom four", ratio["post"], at_least=20)
claim("pre-norm after training: the same", ratio["pre"], at_most=1)

# %% [markdown]
# Post-norm stays at the loss of somebody who knows how often each letter comes and nothing else. Its first steps, taken
# at full rate, left all the gradient in the top layers: the bottom ones get less than a twentieth of it and stand
# still. A warmup would have kept those first steps small. That is the price that pre-norm does not ask.
#
# *A kind word on the lessons.* "Large at the top, tiny at the bottom, already at initialisation" depends on how the
# weights are drawn and on depth: the dotted lines show that this stack does not begin that way. And pre-norm does not keep
# the gradient *equal*: its bottom layers get more than its top ones, three to five times more in our measurement.

# %%
claim(
    "pre-norm at first: gradient of the top four layers over the bottom four",
    sum(runs["pre"]["first"][-4:]) / sum(runs["pre"]["first"][:4]), at_least=0.15, at_most=0.5,
)  # fmt: skip

# %% [markdown]
# ## The price of pre-norm: the stream grows
#
# Nobody norms the stream any more, so its size is the sum of all that was added. Where the branches are not
# correlated, their squares add up: $\|x\|^2$ grows about linearly with the layer. Each layer then changes a larger stream
# by the same amount, which is a smaller share. At the end one norm brings the size back for the head.

# %%
figure, (left, right) = pictures(columns=2, width=15, height=5)
for position, colour in (("pre", PRE), ("post", POST)):
    stream = streams(stack(position), batch)  # (L + 1, B, T, D)
    size = stream.pow(2).sum(dim=-1).mean(dim=(1, 2)) / 32
    change = (stream[1:] - stream[:-1]).norm(dim=-1) / stream[:-1].norm(dim=-1)
    left.plot(size, color=colour, label=f"{position}-norm")
    right.plot(range(1, 17), change.mean(dim=(1, 2)), color=colour, label=f"{position}-norm")
    if position == "pre":
        grown, shares = size, change.mean(dim=(1, 2))
    else:
        steady = size
left.set(xlabel="layer $l$", ylabel=r"$\|x\|^2\,/\,D$", title="Size of the stream, at first", xlim=(0, 20))
right.set(xlabel="layer $l$", ylabel="change over size", title="What a layer changes", ylim=(0, None), xlim=(0, 20))
label_lines(left)
label_lines(right)
show(figure)
claim("pre-norm, size after 16 layers over that after 8", float(grown[16] / grown[8]), at_least=1.6, at_most=2.6)
claim("post-norm, size after every layer", float(steady[1:].max()), 1.0, within=0.01)
claim("pre-norm, change by the last layer over change by the first", float(shares[-1] / shares[0]), at_most=0.5)

# %% [markdown]
# ## Two sums
#
# A block is two sums: $x$ plus what attention found, then *that* plus what the FFN makes of it, each branch behind a norm of its
# own. The stream that is added to is never the normed copy. Its derivative is $I + \partial f / \partial x$. One token, one layer, D = 32: how each entry of the output moves with each entry of the input. The diagonal is the
# identity. It is there whatever the branches do, and where both output projections are zero it is all there is.

# %%
cos, sin = impl.rope_cos_sin(torch.arange(1), impl.rope_frequencies(8))


def jacobian(block):
    x = torch.randn(1, 1, 32, generator=torch.Generator().manual_seed(1))
    return torch.autograd.functional.jacobian(lambda x: block(x, cos, sin), x).view(32, 32)


block = stack("pre").blocks[0]
usual = jacobian(block)
torch.nn.init.zeros_(block.get_parameter("attn.w_o.weight"))
torch.nn.init.zeros_(block.get_parameter("ffn.w_down.weight"))
silent = jacobian(block)

figure, axes = pictures(columns=2, width=13, height=5.6)
titles = (r"pre-norm block: $I + \partial f/\partial x$", "both output projections zero")
for panel, values, title in zip(axes, (usual, silent), titles, strict=True):
    image = panel.imshow(values, cmap="PuOr", vmin=-1.5, vmax=1.5)
    panel.set(xlabel="entry of the input", ylabel="entry of the output", title=title)
    panel.grid(False)
figure.colorbar(image, ax=axes, label="derivative")
show(figure)
claim("largest distance from the identity, with silent branches", float((silent - torch.eye(32)).abs().max()), 0.0)
claim("mean of the diagonal, usual block", float(usual.diagonal().mean()), 1.0, within=0.35)

# %% [markdown]
# ## The stream of a real model
#
# SmolLM2-135M has L = 30 pre-norm layers. Its stream through the implementation under test:

# %%
real = smollm2(impl)
if real:
    words = "The residual stream is a page that every layer may write on."
    tokens = torch.tensor([real.words.encode(words).ids])
    stream = streams(real.model, tokens)[:, 0, 1:]  # (L + 1, T - 1, D): the first token is a case of its own
    size = stream.norm(dim=-1).mean(dim=1)
    figure, axes = pictures()
    axes.semilogy(size, color=PRE)
    axes.set(xlabel="layer $l$", ylabel=r"$\|x\|$ (log)", title="SmolLM2-135M: the stream grows with depth")
    show(figure)
    claim("the largest stream over the first", float(size.max() / size[0]), at_least=20)

# %% [markdown]
# ## When it goes wrong
#
# | symptom | cause | the test that says so |
# | --- | --- | --- |
# | trains at 6 layers, not at 30 | the norm stands on the stream | `test_block_is_identity_when_both_branches_are_silent` |
# | the block forgets its input | the normed copy is added, not the stream | `test_block_keeps_attention_output_in_the_stream` |
# | the FFN ignores what attention found | both branches read the first stream | `test_block_ffn_reads_the_stream_after_attention` |
# | the loss is a little worse, nothing looks wrong | one norm serves both branches | `test_block_uses_each_norm_for_its_branch` |
# | activations grow without a bound into a branch | a branch reads the raw stream | `test_block_branches_read_a_normed_copy` |

# %% [markdown]
# ## Checkpoint
#
# <details><summary>Why does pre-norm train more stably than post-norm?</summary>
#
# The gradient has a path through plain additions from the loss to the embedding: every layer's Jacobian is
# $I + \partial f/\partial x$. In post-norm that path crosses a norm at each addition, the factors multiply over
# the layers, and the first steps at full rate can leave the bottom without a gradient.
#
# </details>
#
# <details><summary>Interview: why did everyone switch to pre-norm, and what does it break? (3 minutes)</summary>
#
# The original put the norm after the sum, so it lies on the gradient's path: deep stacks needed a warmup and were fragile.
# Pre-norm moves it into the branch and leaves the identity path free. The price: the stream is never normed, so
# its size grows with depth (about linearly in variance while branches are uncorrelated), later layers change it by a smaller
# share, and a final norm is needed before the head. Some models therefore norm the branch's output too: Gemma 2 before
# and after, OLMo 2 only after.
#
# </details>
#
# <details><summary>A factor of 0.9 a layer sounds harmless. What is left after 32 layers?</summary>
#
# $0.9^{32} = 0.034$: three percent. Factors along a path multiply, so "nearly 1" is not near enough.
#
# </details>
#
# <details><summary>Why does a pre-norm model need a norm before the head, and a post-norm model does not?</summary>
#
# In post-norm the last thing that happened to the stream was a norm. In pre-norm it was an addition, and its
# size depends on depth and on training. The head would get logits of any size.
#
# </details>
#
# <details><summary>What is the block when both of its output projections are zero?</summary>
#
# With pre-norm the identity: nothing is added. With post-norm it still norms twice. That is the quickest test of the
# placement.
#
# </details>
