"""Stability at depth, measured: a stack of the recipe's blocks, as deep as the 7B shape and very narrow.

Four questions, asked of the active implementation as it comes from its __init__:
  - does the stack learn without warm-up? Each token names the next one, a look-up; the rate is high;
  - at the start, how large are the gradients of the top layers against the bottom ones, and how much
    does the stream grow on the way up?
  - the projections of q and k have drifted: does the softmax still look at more than one token?
  - log Z has drifted: does the loss pull it back?

L layers, B batch, T query length, V vocabulary, D width, F FFN width, N query heads, H head size.
"""

import functools
import math
from dataclasses import dataclass

import torch

from nanolm.config import ModelConfig
from nanolm.model import LanguageModel

L, V, D, N, H, B, T = 32, 32, 32, 4, 8, 8, 16
F_PLAIN, F_GATED = 4 * D, 85  # 85 is 8D/3: as many parameters either way
STEPS, LAST, RATE = 28, 8, 1e-2
DRIFT, LOG_Z = 8, 20.0
SEED = 0  # one try: near the edge another seed may fall on the other side


@dataclass(frozen=True)
class Measured:
    """What was measured on one stack."""

    loss: float  # mean of the last steps
    gradient_ratio: float  # top four layers over bottom four
    growth: float  # rms of the stream after the last layer over that after the first
    gradients: tuple  # one norm a layer
    stream: tuple  # one rms a layer
    saturation: float  # mean over queries and heads of the largest attention weight
    pull: float  # derivative of the loss when all logits rise together

    guess = math.log(V)

    @property
    def learned(self):
        """Clearly better than a blind guess."""
        return self.loss < 0.9 * self.guess

    @property
    def guarded(self):
        """Drifting projections leave the softmax alive, and a drifting log Z is pulled back."""
        return self.saturation < 0.9 and self.pull > 1e-3


def measure(recipe, implementation):
    """Measured for a recipe's toggles; the second time it is remembered. How many heads share (g) counts, tying not."""
    cfg = ModelConfig(
        L=L, V=V, D=D, N=N, H=H, K=max(N // recipe.g, 1) if recipe.gqa else N, T_max=T, tie_embeddings=True,
        norm="rmsnorm" if recipe.rmsnorm else "layernorm", norm_position="pre" if recipe.pre_norm else "post",
        positions="rope" if recipe.rope else "learned", ffn="swiglu" if recipe.swiglu else "gelu",
        ffn_dim=F_GATED if recipe.swiglu else F_PLAIN, bias=not recipe.bias_free, qk_norm=recipe.qk_norm,
    )  # fmt: skip
    return _measure(cfg, recipe.z_loss, implementation)


@functools.lru_cache(maxsize=512)
def _measure(cfg, z_loss, implementation):
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(SEED)
        model = LanguageModel(cfg, implementation)
        stream = []

        def note_size(block, inputs, out):
            stream.append(float(out.detach().pow(2).mean().sqrt()))

        hooks = [block.register_forward_hook(note_size) for block in model.blocks]
        losses, gradients = [], ()
        optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, fused=True)
        for step in range(STEPS):
            tokens = _look_up()
            logits = model(tokens)
            loss = torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())
            losses.append(float(loss.detach()))
            if z_loss:
                loss = loss + implementation.z_loss(logits[:, :-1])
            optimizer.zero_grad()
            loss.backward()
            if step == 0:
                for hook in hooks:
                    hook.remove()
                gradients = tuple(_gradient(block) for block in model.blocks)
            optimizer.step()
        return Measured(
            loss=sum(losses[-LAST:]) / LAST,
            gradient_ratio=sum(gradients[-4:]) / sum(gradients[:4]),
            growth=stream[-1] / stream[0],
            gradients=gradients,
            stream=tuple(stream),
            saturation=_saturation(cfg, implementation),
            pull=_pull(z_loss, implementation),
        )


def _look_up():
    """Tokens (B, T): after token v always comes 5v + 3 (mod V), which runs through all V of them."""
    tokens = [torch.randint(V, (B,))]
    for _ in range(T - 1):
        tokens.append((5 * tokens[-1] + 3) % V)
    return torch.stack(tokens, dim=1)


def _gradient(block):
    squares = [p.grad.pow(2).sum() for p in block.parameters() if p.grad is not None]
    return float(torch.stack(squares).sum().sqrt())


@torch.no_grad()
def _saturation(cfg, implementation):
    """The attention weights, read through the module: token j's value is the j-th unit vector, and w_o hands it on."""
    attention = implementation.GroupedQueryAttention(cfg)
    x = torch.randn(H, D)  # H tokens, so that H numbers can tell them apart
    weights = {name: tensor.clone() for name, tensor in attention.state_dict().items()}
    for name in weights:
        if name.endswith("bias"):
            weights[name].zero_()
    weights["w_q.weight"] *= DRIFT
    weights["w_k.weight"] *= DRIFT
    weights["w_v.weight"] = torch.linalg.pinv(x).T.repeat(cfg.K, 1)  # (K*H, D): x -> unit vectors, in every head
    weights["w_o.weight"] = torch.eye(D)
    attention.load_state_dict(weights)
    angle = torch.zeros(H, H // 2)  # nothing is turned: position is not the question
    seen = attention(x[None], angle.cos(), angle.sin()).view(H, N, H)  # query, head, token
    return float(seen[1:].amax(dim=-1).mean())  # the first query has no choice


def _pull(z_loss, implementation):
    logits = torch.randn(T, V)
    logits = (logits - logits.logsumexp(dim=-1, keepdim=True) + LOG_Z).requires_grad_()
    loss = torch.nn.functional.cross_entropy(logits, torch.arange(T) % V)
    if z_loss:
        loss = loss + implementation.z_loss(logits)
    loss.backward()
    return abs(float(logits.grad.sum()))
