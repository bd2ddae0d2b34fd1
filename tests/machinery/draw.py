"""Random inputs and weights, made to be loud: every gain and weight is random, sizes all differ.

A `Draw` is one test's own source of numbers. `BASE_SEED` shifts all of them: the public run uses 0.
"""

import math

import torch

from nanolm.config import preset

BASE_SEED = 0


class Draw:
    def __init__(self, seed):
        self._generator = torch.Generator().manual_seed(BASE_SEED + seed)

    def normal(self, *shape, std=1.0, mean=0.0):
        """fp32 normal numbers."""
        return torch.randn(shape, generator=self._generator) * std + mean

    def uniform(self, *shape, low=0.0, high=1.0):
        return torch.rand(shape, generator=self._generator) * (high - low) + low

    def whole(self, public, low, high):
        """A whole number in low .. high; `public` in the public run, so that everybody reads the same message."""
        return public if BASE_SEED == 0 else int(torch.randint(low, high + 1, (), generator=self._generator))

    def real(self, public, low, high):
        """A number in low .. high with three digits behind the point; `public` in the public run."""
        return public if BASE_SEED == 0 else self.whole(0, round(low * 1000), round(high * 1000)) / 1000

    def renamed(self, tokens, V):
        """The same text in tokens of other numbers, but for 0, which some take for padding; public as it is."""
        return torch.cat((torch.zeros(1, dtype=torch.long), self.order(V - 1) + 1))[tokens]

    def order(self, count):
        """0 .. count - 1 in a random order; as they are in the public run."""
        return torch.arange(count) if BASE_SEED == 0 else torch.randperm(count, generator=self._generator)

    def gain(self, D):
        """A gain in -0.5 .. 1.5 with one channel switched off."""
        gain = self.uniform(D, low=-0.5, high=1.5)
        gain[D // 2] = 0.0
        return gain

    def tokens(self, *shape, V):
        return torch.randint(0, V, shape, generator=self._generator)

    def weights(self, shapes, std=0.35):
        """Weights by name: a vector is a gain, a matrix is normal. At std 0.35 attention is far from uniform."""
        return {
            name: self.gain(shape[0]) if len(shape) == 1 else self.normal(*shape, std=std)
            for name, shape in shapes.items()
        }


def tiny(**changes):
    """The tiny configuration: D = 36, N = 6, K = 2, G = 3, H = 8 (not D / N), F = 40."""
    return preset("tiny").but(**changes)


def drawn_sizes(seed, **changes):
    """The tiny configuration; another of about its size in a run that is not public."""
    draw, cfg = Draw(seed), tiny()
    K, G = draw.whole(cfg.K, 2, 5), draw.whole(cfg.G, 2, 5)
    return cfg.but(
        L=draw.whole(cfg.L, 2, 9), V=draw.whole(cfg.V, 50, 500), D=draw.whole(cfg.D, 20, 90), K=K, N=K * G,
        H=2 * draw.whole(cfg.H // 2, 3, 20), ffn_dim=draw.whole(cfg.F, 30, 200),
    ).but(**changes)  # fmt: skip


def drawn_like(name, seed, deep=False):
    """This preset; with another vocabulary, FFN width and T_max in a run that is not public, `deep` with all sizes."""
    draw, cfg = Draw(seed), preset(name)
    if deep:  # H stays D / N, as in all of these models: that it need not be is asked elsewhere
        H = 2 * draw.whole(cfg.H // 2, 10, 99)
        cfg = cfg.but(L=draw.whole(cfg.L, 8, 99), D=cfg.N * H, H=H)
    return cfg.but(
        V=draw.whole(cfg.V, 1_000, 200_000), ffn_dim=draw.whole(cfg.F, 1_000, 20_000),
        T_max=draw.whole(cfg.T_max, 500, 9_000),
    )  # fmt: skip


def attention_shapes(cfg, prefix=""):
    shapes = {
        "w_q.weight": (cfg.N * cfg.H, cfg.D),
        "w_k.weight": (cfg.K * cfg.H, cfg.D),
        "w_v.weight": (cfg.K * cfg.H, cfg.D),
        "w_o.weight": (cfg.D, cfg.N * cfg.H),
    }
    if cfg.qk_norm:
        shapes |= {"q_norm.weight": (cfg.H,), "k_norm.weight": (cfg.H,)}
    return {prefix + name: shape for name, shape in shapes.items()}


def swiglu_shapes(D, F, prefix=""):
    return {f"{prefix}w_gate.weight": (F, D), f"{prefix}w_up.weight": (F, D), f"{prefix}w_down.weight": (D, F)}


def block_shapes(cfg, prefix=""):
    return {
        f"{prefix}attn_norm.weight": (cfg.D,),
        **attention_shapes(cfg, f"{prefix}attn."),
        f"{prefix}ffn_norm.weight": (cfg.D,),
        **swiglu_shapes(cfg.D, cfg.F, f"{prefix}ffn."),
    }


def model_shapes(cfg):
    shapes = {"embed.weight": (cfg.V, cfg.D)}
    for layer in range(cfg.L):
        shapes |= block_shapes(cfg, f"blocks.{layer}.")
    shapes["norm.weight"] = (cfg.D,)
    if not cfg.tie_embeddings:
        shapes["head.weight"] = (cfg.V, cfg.D)
    return shapes


def added_by_shapes(cfg, less):
    """By how many numbers the parameters of `cfg` are more than those of `less`, shape by shape; of None: all."""
    more, fewer = (
        sum(math.prod(shape) for shape in model_shapes(each).values()) if each else 0 for each in (cfg, less)
    )
    return more - fewer


def no_turn(T, H):
    """cos and sin of position 0 for all T tokens: a rotation by nothing, so RoPE can't be at fault."""
    return torch.ones(T, H // 2), torch.zeros(T, H // 2)
