import math

import torch
from torch import nn

from nanolm.cache import LayerCache
from nanolm.config import ModelConfig

from .modules import RMSNorm
from .rope import apply_rope


def repeat_kv(x: torch.Tensor, G: int) -> torch.Tensor:
    n_rep = G
    bs, n_kv_heads, slen, head_dim = x.shape
    if n_rep == 1:
        return x
    return (
        x[:, :, None, :, :]
        .expand(bs, n_kv_heads, n_rep, slen, head_dim)
        .reshape(bs, n_kv_heads * n_rep, slen, head_dim)
    )


def causal_mask(T: int, S: int, window: int | None = None, device=None) -> torch.Tensor:
    if T > S:
        raise ValueError(f"T = {T} queries can't be the last of S = {S} tokens: T must not exceed S.")
    if window is not None and window < 1:
        raise ValueError(f"window = {window} would hide every token: it must be at least 1.")
    mask = torch.ones((T, S), dtype=torch.bool, device=device)
    mask = torch.tril(mask, diagonal=S - T)
    if window is not None:
        mask = torch.logical_and(mask, torch.triu(torch.ones_like(mask), diagonal=S - T - (window - 1)))
    return mask


def softcap(z: torch.Tensor, cap: float | None) -> torch.Tensor:
    if cap is None:
        return z
    z = z / cap
    z = torch.tanh(z)
    return z * cap


class GroupedQueryAttention(nn.Module):

    def __init__(self, cfg: ModelConfig, layer: int = 0):
        super().__init__()
        self.cfg = cfg
        self.window = cfg.window_of(layer)
        self.w_q = nn.Linear(cfg.D, cfg.N * cfg.H, bias=cfg.bias)
        self.w_k = nn.Linear(cfg.D, cfg.K * cfg.H, bias=cfg.bias)
        self.w_v = nn.Linear(cfg.D, cfg.K * cfg.H, bias=cfg.bias)
        self.w_o = nn.Linear(cfg.N * cfg.H, cfg.D, bias=cfg.bias)
        if cfg.qk_norm:
            self.q_norm = RMSNorm(cfg.H, cfg.norm_eps)
            self.k_norm = RMSNorm(cfg.H, cfg.norm_eps)

    def forward(
        self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, cache: LayerCache | None = None
    ) -> torch.Tensor:
        bsz, seqlen, _ = x.shape
        xq, xk, xv = self.w_q(x), self.w_k(x), self.w_v(x)

        xq = xq.view(bsz, seqlen, self.cfg.N, self.cfg.H).transpose(1, 2)
        xk = xk.view(bsz, seqlen, self.cfg.K, self.cfg.H).transpose(1, 2)
        xv = xv.view(bsz, seqlen, self.cfg.K, self.cfg.H).transpose(1, 2)

        if self.cfg.qk_norm:
            xq = self.q_norm(xq)
            xk = self.k_norm(xk)

        xq = apply_rope(xq, cos, sin)
        xk = apply_rope(xk, cos, sin)

        keys, values = xk, xv
        if cache is not None:
            keys, values = cache.append(xk, xv)

        keys = repeat_kv(keys, self.cfg.G)
        values = repeat_kv(values, self.cfg.G)

        scores = torch.matmul(xq, keys.transpose(2, 3)) / math.sqrt(self.cfg.H)
        if self.cfg.attn_softcap is not None:
            scores = softcap(scores, self.cfg.attn_softcap)
        mask = causal_mask(seqlen, keys.shape[2], self.window, device=x.device)
        scores = torch.where(mask, scores, float("-inf"))
        scores = torch.softmax(scores.float(), dim=-1).type_as(xq)
        output = torch.matmul(scores, values)
        output = output.transpose(1, 2).contiguous().view(bsz, seqlen, -1)
        return self.w_o(output)
