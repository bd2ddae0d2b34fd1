"""The 2019 parts and the other placements, given: what the modern block is compared with.

`make_block` builds the student's own Block for the modern recipe. Any other recipe is assembled
here from the active implementation's parts (RMSNorm, SwiGLU, attention) and the given ones.
"""

import torch
from torch import nn


class GatedFFN(nn.Module):
    """GeGLU: a gated FFN with tanh-GELU as the gate (Gemma)."""

    def __init__(self, D, F):
        super().__init__()
        self.w_gate = nn.Linear(D, F, bias=False)
        self.w_up = nn.Linear(D, F, bias=False)
        self.w_down = nn.Linear(F, D, bias=False)

    def forward(self, x):
        opened = torch.nn.functional.gelu(self.w_gate(x), approximate="tanh")
        return self.w_down(torch.mul(opened, self.w_up(x)))


class GeluFFN(nn.Module):
    """GPT-2's FFN: two matrices with tanh-GELU between them."""

    def __init__(self, D, F, bias):
        super().__init__()
        self.w_in = nn.Linear(D, F, bias=bias)
        self.w_out = nn.Linear(F, D, bias=bias)

    def forward(self, x):
        return self.w_out(torch.nn.functional.gelu(self.w_in(x), approximate="tanh"))


def make_norm(cfg, impl):
    """The norm that cfg names, of width D."""
    if cfg.norm == "layernorm":
        return nn.LayerNorm(cfg.D, cfg.norm_eps, bias=cfg.bias)
    return impl.RMSNorm(cfg.D, cfg.norm_eps)


def make_ffn(cfg, impl):
    """The FFN that cfg names, D -> F -> D."""
    if cfg.ffn == "gelu":
        return GeluFFN(cfg.D, cfg.F, cfg.bias)
    return (GatedFFN if cfg.ffn == "geglu" else impl.SwiGLU)(cfg.D, cfg.F)


def make_block(cfg, layer, impl):
    """The block of one layer: the implementation's own for the modern recipe, else a RecipeBlock."""
    modern = cfg.norm == "rmsnorm" and cfg.norm_position == "pre" and cfg.ffn == "swiglu"
    return impl.Block(cfg, layer) if modern else RecipeBlock(cfg, layer, impl)


class RecipeBlock(nn.Module):
    """Any norm, FFN and placement. A norm may stand in three places around a branch:

    before it (pre, sandwich), on its output (sandwich), on the stream after the sum (post).
    """

    def __init__(self, cfg, layer, impl):
        super().__init__()
        self.position = cfg.norm_position
        self.attn_norm = make_norm(cfg, impl)
        self.attn = impl.GroupedQueryAttention(cfg, layer)
        self.ffn_norm = make_norm(cfg, impl)
        self.ffn = make_ffn(cfg, impl)
        if self.position == "sandwich":
            self.attn_out_norm = make_norm(cfg, impl)
            self.ffn_out_norm = make_norm(cfg, impl)

    def forward(self, x, cos, sin, cache=None):
        """(B, T, D) -> (B, T, D)."""
        nothing = nn.Identity()
        sandwich, post = self.position == "sandwich", self.position == "post"
        branches = (
            (self.attn_norm, lambda h: self.attn(h, cos, sin, cache), self.attn_out_norm if sandwich else nothing),
            (self.ffn_norm, self.ffn, self.ffn_out_norm if sandwich else nothing),
        )
        for norm, branch, out_norm in branches:
            before, after = (nothing, norm) if post else (norm, nothing)
            x = after(torch.add(x, out_norm(branch(before(x)))))
        return x
