# %% [markdown]
# # Week 6: the modern block
#
# Five pieces turn the block of 2019 into the one that today's models are made of: RMSNorm, SwiGLU, RoPE, grouped-query
# attention, and the block that holds them. You write each one, about 60 lines in all.
#
# **Where you write.** The code lives in the files of [exercises_en/](exercises_en/), not in this notebook. Open a file, replace
# the `raise` below a TODO, save it, come back and run the check. The written answers go into the cells that say so, here.
#
# **What it counts.** The code gives CORE_POINTS points. The written answers at the end give WRITTEN_POINTS more, read by a person, so that the week
# is out of ALL_POINTS. The depth parts are a bonus: what you earn there is added on top, and the maximum stays ALL_POINTS.
#
# **What the checks are.** A cell with `self_check` runs the public tests of one part on your files. It is there to help you. Your
# grade comes from the same tests with other numbers, on a copy of your files: code that computes gets the same points there,
# code that remembers gets none.
#
# **Hand in** this notebook and the folder `exercises_en` together. Of the notebook only your written answers are read.

# %%
from nanolm.classroom import week
from nanolm.student.selfcheck import self_check

# %% [markdown]
# **Notation**, the same everywhere: B batch, L layers, T query length, S key length, V vocabulary, D width, H head size, F FFN
# width, N query heads, K key/value heads, G = N / K query heads to each of them.
#
# ## 1 RMSNorm
#
# A row of the stream may have grown to any size. RMSNorm brings it to the size that the next layer expects and keeps its
# direction: in the picture every arrow lands on the circle of radius $\sqrt D$, and none is moved aside first.
#
# $$y = \frac{x}{\sqrt{\frac{1}{D}\sum_i x_i^2 + \varepsilon}} \odot w$$
#
# **Write** `RMSNorm.forward` in [exercises_en/modules.py](exercises_en/modules.py). **Check** in a terminal, or in the cell below:
# `pytest tests/test_rmsnorm.py`

# %%
week.show_rmsnorm()

# %% part="rmsnorm"
self_check("rmsnorm")

# %% [markdown]
# ## 2 SwiGLU
#
# Two projections of the same input. One says *what*, the other, bent by SiLU, says *how much of it*: the picture shows how a
# gate lets a value of 3 through, or nearly shuts it off.
#
# $$\text{SwiGLU}(x) = W_{down}\,\big(\text{silu}(W_{gate}\,x) \odot W_{up}\,x\big), \qquad \text{silu}(z) = z\,\sigma(z)$$
#
# Three matrices where there were two: `ffn_dim` makes them narrower, so that the bill stays what it was.
#
# **Write** `SwiGLU.forward` and `ffn_dim` in [exercises_en/modules.py](exercises_en/modules.py). **Check**
# `pytest tests/test_swiglu.py` and `pytest tests/test_budget.py -k ffn_dim`

# %%
week.show_gate()

# %% part="swiglu"
self_check("swiglu")

# %% [markdown]
# ## 3 RoPE
#
# A query and a key are turned by an angle that grows with their position, each pair of channels at its own speed. What is left
# in their product is the difference of the angles: the distance.
#
# $$\theta_i = \theta^{-2i/H}, \qquad (a, b) \mapsto (a\cos m\theta_i - b\sin m\theta_i,\; a\sin m\theta_i + b\cos m\theta_i)$$
#
# The picture: the first pair is the fast hand of the clock, the last one hardly moves.
#
# **Write** `rope_frequencies`, `rope_cos_sin` and `apply_rope` in [exercises_en/rope.py](exercises_en/rope.py). **Check**
# `pytest tests/test_rope.py`

# %%
week.show_rope()

# %% part="rope"
self_check("rope")

# %% [markdown]
# ## 4 Grouped-query attention
#
# N query heads look, K key/value heads are looked at, and G neighbours share one. The picture shows who shares with whom, and
# whom a token may see.
#
# $$\text{softmax}\!\left(\frac{q\,k^\top}{\sqrt H} + \text{mask}\right) v$$
#
# **Write** `repeat_kv`, `causal_mask` and `GroupedQueryAttention.forward` in
# [exercises_en/attention.py](exercises_en/attention.py). **Check** `pytest tests/test_attention.py`

# %%
week.show_sharing()

# %% part="attention"
self_check("attention")

# %% [markdown]
# ## 5 The block
#
# Two branches, attention and FFN. Each one reads a normalised copy of the stream and adds its correction to the stream itself:
# the line in the picture runs through without a stop.
#
# $$x \leftarrow x + \text{attention}(\text{norm}(x)), \qquad x \leftarrow x + \text{FFN}(\text{norm}(x))$$
#
# **Write** `Block.forward` in [exercises_en/model.py](exercises_en/model.py). **Check** `pytest tests/test_block.py`

# %%
week.show_block()

# %% part="block"
self_check("block")

# %% [markdown]
# ## What it costs, and whether it is a language model
#
# **Write** `count_parameters` and `kv_cache_bytes_per_token` in [exercises_en/budget.py](exercises_en/budget.py). **Check**
# `pytest tests/test_budget.py`

# %% part="budget"
self_check("budget")

# %% [markdown]
# The last check puts your five pieces into a whole model and compares its logits. There is nothing new to write.
# `pytest tests/test_logits.py`

# %% part="logits"
self_check("logits")

# %% [markdown]
# ## The depth parts: a bonus
#
# Take those that you like, in any order. They need the core, and a red one takes nothing away from it.
#
# | part | what it is | file |
# | --- | --- | --- |
# | backward | RMSNorm's gradient by hand | [modules.py](exercises_en/modules.py) |
# | qknorm | queries and keys normalised, head by head | [attention.py](exercises_en/attention.py) |
# | softcap | scores and logits squashed softly | [attention.py](exercises_en/attention.py) |
# | window | attention that sees the last w tokens | [attention.py](exercises_en/attention.py) |
# | cache | one token at a time | [attention.py](exercises_en/attention.py) |
# | recipe | what the older parts cost | [budget.py](exercises_en/budget.py) |
# | objectives | losses, and what a model may be trained to do | [objectives.py](exercises_en/objectives.py) |

# The last check gives advice on code that is right: what it keeps, copies or repeats more than it need. It costs nothing.

# %% part="backward"
self_check("backward")

# %% part="qknorm"
self_check("qknorm")

# %% part="softcap"
self_check("softcap")

# %% part="window"
self_check("window")

# %% part="cache"
self_check("cache")

# %% part="recipe"
self_check("recipe")

# %% part="objectives"
self_check("objectives")

# %% part="memory"
self_check("memory")

# %% [markdown]
# ## Written answers: WRITTEN_POINTS points
#
# A few sentences each, in your own words, into the cell below the question. Formulas go between dollar signs. Write into that
# cell: pictures of handwriting are shown to the grader, links are not followed.

# %% [markdown] question="ffn-width"
# ### The width of a gated FFN
#
# A plain FFN has two matrices, of D by 4D and back. Derive the width F at which a gated one has as many parameters. What do you
# get for D = 4096, what do released models do with that number, and what happens to the bill if somebody keeps 4D?

# %% [markdown] answer="ffn-width" points=4
# - 1 point: the condition is that the parameters are equal, $2 \cdot D \cdot 4D = 3 \cdot D \cdot F$.
# - 1 point: solved, $F = 8D/3$.
# - 1 point: at D = 4096 that is 10,922.67, rounded up to a multiple of 256: 11,008.
# - 1 point: with 4D the FFN has $12D^2$ instead of $8D^2$, half as much again.
#
# Half a point off for a right number without its reason. Any order of the steps is fine.

# %% [markdown] question="kv-cache"
# ### The size of the cache
#
# Write down how many bytes the key/value cache takes for each token and say where every factor comes from. Work it out for
# L = 32, N = 32, H = 128 in bf16, with K = 32 and with K = 8, and for 32,768 tokens. What stays the same for the queries?

# %% [markdown] answer="kv-cache" points=5
# - 1 point: $2 \cdot L \cdot K \cdot H$ times the bytes of a number.
# - 1 point: the factors: keys and values, layers, key/value heads, head size, 2 bytes.
# - 1 point: 524,288 bytes (512 KiB) a token with K = 32, 131,072 (128 KiB) with K = 8.
# - 1 point: about 17.2 GB and 4.3 GB at 32,768 tokens (16 and 4 GiB); the cache is divided by G = N / K.
# - 1 point: all N query heads are still there; only what is stored is shared, so the loss in quality is small.

# %% [markdown] question="pre-norm"
# ### Pre-norm against post-norm, in two minutes
#
# Why did everybody move the norm into the branch, and what did that break? Answer as you would in an interview: the old
# placement, what the gradient meets on its way, what changes, what it costs, and what some models do about it.

# %% [markdown] answer="pre-norm" points=6
# - 1 point: where the norm stands: $\text{norm}(x + f(x))$ against $x + f(\text{norm}(x))$.
# - 2 points: the gradient's path. Post-norm: through every norm in turn, factors multiply (0.9 to the 32nd is 0.03).
#   Pre-norm: the Jacobian is $I + \partial f / \partial x$, a path that no norm interrupts.
# - 1 point: what follows for training: post-norm needs a long warm-up and is fragile when deep; pre-norm does not.
# - 1 point: the price: the stream grows with depth, later layers change it less, and a final norm is needed.
# - 1 point: a way out that is in use: a norm at the branch's output as well (Gemma 2, OLMo 2), or the like.
#
# A list of right words without the path of the gradient gets 3 at most.

# %% [markdown] question="rmsnorm-drops"
# ### What RMSNorm leaves out
#
# Write RMSNorm next to LayerNorm. What is missing, why can it be missed, what is saved, and what is the learned gain for?

# %% [markdown] answer="rmsnorm-drops" points=4
# - 1 point: both formulas, with eps inside the root; subtracting the mean and the shift are gone.
# - 1 point: why that is safe: centring brings next to nothing, quality as measured is the same.
# - 1 point: one reduction, one subtraction and D parameters less; norms are bound by memory, so that is time.
# - 1 point: the gain gives each channel its own scale back, down to shutting it off.

# %% [markdown] question="rope-distance"
# ### Why RoPE knows distances
#
# Show for one pair of channels that the score of a query at m and a key at n depends on n - m only. Why is V left alone? A model
# trained at 8,192 tokens is served at 128,000 and falls apart past 16,000: what happens, and what would you change?

# %% [markdown] answer="rope-distance" points=4
# - 2 points: $(R(m\theta)\,q)^\top R(n\theta)\,k = q^\top R((n - m)\theta)\,k$, from $R(a)^\top = R(-a)$ and angles adding up.
# - 1 point: V carries content; what is mixed should not depend on where it stood.
# - 1 point: distances that were never seen in training, for the slow pairs angles that were never seen; raise theta, or
#   interpolate positions (NTK, YaRN), usually with a short training at the new length.

# %% [markdown] question="guards"
# ### Two guards against spikes
#
# What do QK-norm and the z-loss each keep from growing, why does that hurt, and why does neither take anything away from what the
# model can say?

# %% [markdown] answer="guards" points=4
# - 1 point: QK-norm: the size of queries and keys, so that scores cannot drift off; applied to each head before the product.
# - 1 point: large scores saturate the softmax, gradients vanish or the loss spikes.
# - 1 point: the z-loss: a small penalty on the square of log Z, which keeps the output's normaliser near 1; bf16 suffers from
#   large values.
# - 1 point: learned gains and the softmax's freedom to shift leave the same functions within reach.

# %% [markdown] question="tying"
# ### One matrix for both ends
#
# What does tying the embedding to the head save, how much is that for a small model and for a large one, and why do large ones
# often give it up?

# %% [markdown] answer="tying" points=3
# - 1 point: V times D parameters, once instead of twice.
# - 1 point: about a third of GPT-2 small; a few percent of an 8B model (525 million, 6.5%).
# - 1 point: the two have different work: one reads a token, the other predicts the next one.
