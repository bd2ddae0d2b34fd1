# %% [markdown]
# # 02 RMSNorm and its geometry
#
# **The question.** LayerNorm subtracts the mean, divides by the standard deviation, scales and shifts. It is slow for
# what it computes, because every step is a walk over memory. Which of its four steps does a Transformer need, and what
# happens to a vector when the others are dropped?
#
# | | what it computes | learned | reductions over D |
# | --- | --- | --- | --- |
# | LayerNorm | $\dfrac{x - \text{mean}(x)}{\sqrt{\text{var}(x) + \epsilon}} \odot \gamma + \beta$ | $2D$ | 2 |
# | RMSNorm | $\dfrac{x}{\sqrt{\text{mean}(x^2) + \epsilon}} \odot \gamma$ | $D$ | 1 |

# %%
import torch

from nanolm.classroom import (
    COLOURS, active, claim, label_lines, pictures, show, slider, smollm2, streams, watch,
)

RMS, LAYER = COLOURS["blue"], COLOURS["orange"]
impl = active("RMSNorm")


def rmsnorm(x, eps=1e-8):
    """The active RMSNorm with a gain of ones."""
    with torch.no_grad():
        return impl.RMSNorm(x.shape[-1], eps)(x)


def layernorm(x, eps=1e-8):
    """torch's LayerNorm without scale and shift, to compare with."""
    return torch.nn.functional.layer_norm(x, x.shape[-1:], eps=eps)


# %% [markdown]
# ## The formula
#
# Two numbers first: the vector [3, 4]. Both entries are positive, and the second is a third larger than the first.

# %%
x = torch.tensor([3.0, 4.0])
figure, axes = pictures(width=9, height=6.2)
around = torch.linspace(0, 2 * torch.pi, 200)
axes.plot(2**0.5 * around.cos(), 2**0.5 * around.sin(), color=COLOURS["grey"], linewidth=1.5)
axes.text(-1.35, -1.6, r"radius $\sqrt{D}$", color=COLOURS["grey"], fontsize=16)
for vector, colour, name in ((x, COLOURS["black"], "x"), (rmsnorm(x), RMS, "RMSNorm"), (layernorm(x), LAYER, "LayerNorm")):
    axes.annotate("", vector.tolist(), (0, 0), arrowprops={"color": colour, "width": 3, "headwidth": 13})
    numbers = ", ".join(f"{entry:.2f}" for entry in vector)
    side, shift = ("right", -0.1) if vector[0] < 0 else ("left", 0.2)
    place = {"ha": side, "va": "center", "fontsize": 16, "fontweight": "bold"}
    axes.text(vector[0] + shift, vector[1], f"{name}\n[{numbers}]", color=colour, **place)
axes.set(xlim=(-4.2, 5.6), ylim=(-2, 4.6), aspect="equal", xlabel="entry 1", ylabel="entry 2")
axes.set_title("Only RMSNorm keeps the direction")
show(figure)
claim("root mean square of [3, 4]", float(x.pow(2).mean().sqrt()), 3.54, within=0.005)
claim("RMSNorm of [3, 4]", rmsnorm(x), [0.85, 1.13], within=0.005)
claim("LayerNorm of [3, 4]", layernorm(x), [-1, 1], within=1e-5)
sizes = [sum(p.numel() for p in norm.parameters()) for norm in (impl.RMSNorm(4096), torch.nn.LayerNorm(4096))]
claim("parameters at D = 4096: RMSNorm, LayerNorm", sizes, [4_096, 8_192])

# %% [markdown]
# LayerNorm has forgotten that both entries were positive, and by how much they differed: in D = 2 it can only say which
# one is larger.
#
# ## The sphere and the hyperplane
#
# RMSNorm makes the mean square 1, so $\|x\|^2 = D$: its outputs lie on the sphere of radius $\sqrt D$. LayerNorm
# first takes the mean away, which is a projection onto the plane through 0 that is orthogonal to the ones vector
# $\mathbf 1$. With the projector $P = I - \frac{1}{D}\mathbf 1 \mathbf 1^\top$:
#
# $$\text{LayerNorm}(x) = \text{RMSNorm}(Px) \qquad\text{and}\qquad \text{RMSNorm}(x) = \sqrt D\,\frac{x}{\|x\|}$$
#
# (gain 1, no shift, $\epsilon$ small). At D = 3 this can be drawn.

# %%
D = 3
cloud = torch.randn(400, D, generator=torch.Generator().manual_seed(0)) + torch.tensor([0.6, 0.2, 0.0])


def sphere(turn):
    figure, axes = pictures(columns=2, width=14, height=6.4, projection="3d")
    for panel, outputs, colour, title in (
        (axes[0], rmsnorm(cloud), RMS, "RMSNorm: the whole sphere"),
        (axes[1], layernorm(cloud), LAYER, "LayerNorm: one circle of it"),
    ):
        panel.scatter(*outputs.T, color=colour, s=22, depthshade=True)
        panel.plot([-1.9, 1.9], [-1.9, 1.9], [-1.9, 1.9], color=COLOURS["black"], linewidth=2)
        panel.text(2.0, 2.0, 2.0, r"$\mathbf{1}$", fontsize=20)
        panel.set(xlim=(-2, 2), ylim=(-2, 2), zlim=(-2, 2), box_aspect=(1, 1, 1), title=title)
        panel.set(xlabel="entry 1", ylabel="entry 2", zlabel="entry 3")
        panel.tick_params(labelsize=10)
        panel.view_init(elev=18, azim=turn)
    return figure


turned = watch(sphere, turn=slider("turn the view, degrees", [-60, -30, 0, 30, 45, 60, 90, 135], start=-30))

# %% [markdown]
# **Change and watch.** Turn the view until you look along $\mathbf 1$ (45 degrees): the circle opens. At 135 degrees it is
# seen from its edge.

# %%
ones = torch.ones(D)
projector = torch.eye(D) - torch.outer(ones, ones) / D
claim("RMSNorm: distance from 0, all 400 points, least and most", [
    float(rmsnorm(cloud).norm(dim=-1).min()), float(rmsnorm(cloud).norm(dim=-1).max())], [3**0.5, 3**0.5], within=1e-4)
claim("LayerNorm: largest share along the ones vector", float((layernorm(cloud) @ ones).abs().max()), 0.0, within=1e-4)
claim("LayerNorm against RMSNorm of the projection, largest difference",
      float((layernorm(cloud) - rmsnorm(cloud @ projector)).abs().max()), 0.0, within=1e-3)

# %% [markdown]
# ## What the mean does
#
# How much is lost by leaving it in? In a wide vector: next to nothing, as long as the mean is small beside the spread. If the two norms divide by almost
# the same number, the cheaper one wins.

# %%
means = torch.linspace(0, 3, 61)
rows = torch.randn(1, 4096, generator=torch.Generator().manual_seed(0))
angle = torch.nn.functional.cosine_similarity(rmsnorm(rows + means[:, None]), layernorm(rows + means[:, None]), dim=-1)
figure, axes = pictures()
axes.plot(means, angle, color=RMS)
real = smollm2(impl)
if real:
    words = "RMSNorm keeps the mean, because a wide stream hardly has one."
    stream = streams(real.model, torch.tensor([real.words.encode(words).ids]))  # (L + 1, 1, T, D)
    off = float((stream.mean(dim=-1).abs() / stream.std(dim=-1)).quantile(0.9))
    axes.axvspan(0, off, color=COLOURS["green"], alpha=0.3)
    axes.text(off + 0.05, 0.2, "nine in ten vectors of\nSmolLM2's stream", color=COLOURS["green"], fontsize=17)
    claim("SmolLM2's stream, mean over spread, nine in ten vectors", off, at_most=0.2)
axes.set(xlabel="mean of the vector, in units of its spread", ylabel="cosine of the two outputs", ylim=(0, 1.05))
axes.set_title("D = 4096: the two norms agree until the mean is large")
show(figure)
claim("cosine where the mean is a fifth of the spread", float(angle[4]), 0.98, within=0.005)

# %% [markdown]
# ## Why $\sqrt D$ is the natural size
#
# Entries of unit variance give $\mathbb E\|x\|^2 = D$. How far from D can a single vector be? Markov's inequality
# says $P(\|x\|^2 \ge aD) \le 1/a$, which is weak. Chebyshev's uses the variance, $2D$ for Gaussian entries:
#
# $$P\left(\left|\frac{\|x\|^2}{D} - 1\right| \ge t\right) \le \frac{2}{D\,t^2}$$
#
# so the relative spread is $\sqrt{2/D}$: the wider the model, the thinner the shell in which all vectors lie.

# %%
generator = torch.Generator().manual_seed(0)
figure, axes = pictures()
spread = {}
for width, colour in ((16, COLOURS["purple"]), (128, COLOURS["green"]), (1024, RMS)):
    ratios = torch.randn(4000, width, generator=generator).pow(2).mean(dim=-1)
    spread[width] = ratios
    axes.hist(ratios.numpy(), bins=60, range=(0, 2.5), density=True, color=colour, alpha=0.75, label=f"D = {width}")
axes.set(xlabel=r"$\|x\|^2\,/\,D$", ylabel="density", title="The wider the vector, the surer its length")
axes.legend(fontsize=18)
show(figure)
claim("mean of ||x||^2 / D at D = 1024", float(spread[1024].mean()), 1.0, within=0.01)
claim("spread at D = 1024 (the formula says 0.0442)", float(spread[1024].std()), (2 / 1024) ** 0.5, within=0.003)
outside = (spread[128] - 1).abs().ge(0.5).float().mean()
claim("share further off than half, D = 128 (Chebyshev allows 0.0625)", float(outside), at_most=2 / (128 * 0.25))

# %% [markdown]
# ## eps
#
# A floor under the division. A row of zeros has no direction. With $\epsilon$ *inside* the root nothing is divided by zero, and a row far smaller
# than $\sqrt\epsilon$ stays small instead of being blown up to full size.

# %%
sizes = torch.logspace(-6, 2, 161)
unit = torch.randn(1, 512, generator=generator)
unit = unit / unit.pow(2).mean().sqrt()
figure, axes = pictures()
for eps, colour in ((1e-8, COLOURS["purple"]), (1e-5, RMS), (1e-2, LAYER)):
    axes.loglog(sizes, rmsnorm(sizes[:, None] * unit, eps).pow(2).mean(dim=-1).sqrt(), color=colour)
    axes.text(eps**0.5 / 6, 0.3, rf"$\epsilon$ = {eps:g}", color=colour, fontsize=17, fontweight="bold", ha="right")
axes.set(xlabel="RMS of the row (log)", ylabel="RMS of the output (log)", ylim=(1e-4, 3))
axes.set_title(r"Below $\sqrt{\epsilon}$ a row is not brought to full size")
show(figure)
at_root = rmsnorm(1e-2**0.5 * unit, 1e-2).pow(2).mean().sqrt()
claim("a row whose mean square is eps comes out at", float(at_root), 0.5**0.5, within=1e-4)
claim("a row of zeros", rmsnorm(torch.zeros(4), 1e-5), [0, 0, 0, 0])

# %% [markdown]
# ## Number formats
#
# fp16 ends at 65,504, and the square of 256 is 65,536. A stream entry of 1,000 is nothing unusual: recall the
# sizes in SmolLM2 (notebook 01). RMSNorm therefore squares in fp32 and casts back once.

# %%
claim("largest fp16 number", torch.finfo(torch.float16).max, 65504.0)
claim("256 squared in fp32", float(torch.tensor(256.0) ** 2), 65536.0)
squared = torch.tensor(256.0).half() ** 2
print(f"256 squared in fp16: {float(squared)}")
assert squared.isinf()
loud = torch.tensor([1000.0, -1000.0, 1000.0, -1000.0]).half()
claim("RMSNorm of fp16 rows of size 1000", rmsnorm(loud, 1e-5), [1, -1, 1, -1], within=1e-3)
naive = loud / (loud.pow(2).mean() + 1e-5).sqrt()
claim("the same without fp32: everything is gone", naive, [0, 0, 0, 0])

# %% [markdown]
# ## The gain
#
# On the sphere every channel has the same say on average. The gain $\gamma$ gives each its own scale back, down to
# zero: a channel that a branch should not hear. It starts at one and is learned. In SmolLM2 it has been:

# %%
if real:
    gains = torch.stack([block.state_dict()["attn_norm.weight"] for block in real.model.blocks])  # (L, D)
    figure, (left, right) = pictures(columns=2, width=15, height=5)
    image = left.imshow(gains.sort(dim=-1).values, aspect="auto", cmap="cividis", vmin=0, vmax=1)
    left.set(xlabel="channel, sorted (D = 576)", ylabel="layer $l$ (L = 30)", title="Learned gains before attention")
    left.grid(False)
    figure.colorbar(image, ax=left, label=r"$\gamma$")
    right.plot(gains.median(dim=-1).values, color=RMS, label="median")
    right.plot(gains.quantile(0.05, dim=-1), color=LAYER, label="lowest 5%")
    right.set(xlabel="layer $l$", ylabel=r"$\gamma$", title="No longer one", xlim=(0, 39))
    label_lines(right)
    show(figure)
    claim("numbers in one gain", gains.shape[1], 576)
    claim("the largest median gain of a layer", float(gains.median(dim=-1).values.max()), at_most=0.5)
    claim("the smallest median gain of a layer", float(gains.median(dim=-1).values.min()), at_most=0.01)

# %% [markdown]
# ## The gradient
#
# Make a row ten times larger and RMSNorm's output stays. So the loss has no slope along the row itself: with $n = x/r$, $r$ the root
# mean square and $g$ the upstream gradient times the gain, the gradient of $x$ is $g$ with its part along $n$ taken out,
# over $r$. Take "its part along $n$" as a mean over D, since $\|n\|^2 = D$. Drawn for 60 random upstream gradients at D = 2:

# %%
row = torch.tensor([1.5, 0.5], requires_grad=True)
upstreams = torch.randn(60, 2, generator=torch.Generator().manual_seed(4))
norm = impl.RMSNorm(2, 1e-8)
pulls = torch.stack([torch.autograd.grad((norm(row) * upstream).sum(), row)[0] for upstream in upstreams])
figure, axes = pictures(width=9, height=5)
for pull in pulls:
    axes.plot([1.5, 1.5 + float(pull[0])], [0.5, 0.5 + float(pull[1])], color=LAYER, linewidth=1.5, alpha=0.6)
axes.annotate("", (1.5, 0.5), (0, 0), arrowprops={"color": RMS, "width": 3, "headwidth": 13})
axes.text(-1.2, 0.45, "the row x", color=RMS, fontsize=17, fontweight="bold")
axes.text(1.9, 1.2, "all its gradients", color=LAYER, fontsize=17, fontweight="bold")
axes.set(xlim=(-1.5, 5), ylim=(-1.3, 2.4), aspect="equal", xlabel="entry 1", ylabel="entry 2")
axes.set_title("Every gradient is orthogonal to x")
show(figure)
claim("largest part of a gradient along the row", float((pulls @ row.detach()).abs().max()), 0.0, within=1e-5)

# %% [markdown]
# ## When it goes wrong
#
# | symptom | cause | the test that says so |
# | --- | --- | --- |
# | rows with a large mean come out wrong | the mean is subtracted | `test_rmsnorm_does_not_center` |
# | tokens influence each other's size | the mean runs over the wrong axis | `test_rmsnorm_produces_unit_rms`, `test_rmsnorm_is_per_token` |
# | the model trains, but fine-tuned weights make no difference | the gain is forgotten | `test_rmsnorm_scales_with_gamma` |
# | tiny rows are too large | eps stands outside the root | `test_rmsnorm_puts_eps_inside_the_root` |
# | zeros or NaN in fp16 | squares without fp32 | `test_rmsnorm_fp16_does_not_overflow` |
# | the next matrix product complains about types | the result is not cast back | `test_rmsnorm_preserves_dtype` |
# | the gradient of x is off, the output is right | the divisor is taken for a constant | `test_backward_matches_autograd` |
# | training starts far too loud or silent | the gain does not start at one | `test_rmsnorm_gamma_starts_at_one` |

# %% [markdown]
# ## Checkpoint
#
# <details><summary>What does RMSNorm remove compared with LayerNorm, and why is there a learnable gain?</summary>
#
# It removes the subtraction of the mean and the shift $\beta$: one reduction instead of two, D parameters instead of
# 2D. The gain gives each channel its own scale again, down to silencing it, which a point on the sphere could not have.
#
# </details>
#
# <details><summary>Interview: write RMSNorm, and say why dropping the rest is safe. What does it save?</summary>
#
# $x / \sqrt{\text{mean}(x^2) + \epsilon} \odot \gamma$, over the last axis, in fp32, cast back. In a wide residual stream the mean
# is small beside the spread, so centring changes the vector very little (the cosine above). Norms are bound by
# memory, so one reduction, one subtraction and one vector less are time saved.
#
# </details>
#
# <details><summary>Where do the outputs of the two norms lie?</summary>
#
# With gain 1 both lie on the sphere of radius $\sqrt D$. LayerNorm's also lie in the hyperplane orthogonal to the ones
# vector: $\text{LayerNorm}(x) = \text{RMSNorm}(Px)$ with $P = I - \mathbf 1\mathbf 1^\top / D$. It loses one dimension.
#
# </details>
#
# <details><summary>Why is the squared length of a fresh stream about D?</summary>
#
# It is a sum of D squares of mean 1. Its relative spread is $\sqrt{2/D}$ for Gaussian entries, so at D = 4096 it is
# 2.2%: Chebyshev bounds how rarely it is further off.
#
# </details>
#
# <details><summary>RMSNorm of a row and of ten times that row: what differs?</summary>
#
# Nothing, as long as the row is large against $\sqrt\epsilon$. That is the point: the next layer sees one size.
#
# </details>
