import torch
from torch import nn

from nanolm.config import ModelConfig

from .modules import RMSNorm
from .rope import apply_rope


def repeat_kv(x: torch.Tensor, G: int) -> torch.Tensor:
    return torch.einsum("bksh,g->bkgsh", x, torch.ones(G, dtype=x.dtype, device=x.device)).flatten(1, 2)


def causal_mask(T: int, S: int, window: int | None = None, device=None) -> torch.Tensor:
    if T > S:
        raise ValueError(f"T = {T} queries can't be the last of S = {S} tokens: T must not exceed S.")
    if window is not None and window < 1:
        raise ValueError(f"window = {window} would hide every token: it must be at least 1.")
    full = torch.ones(T, S, dtype=torch.bool, device=device)
    mask = full.tril(S - T)
    if window is not None:
        mask &= full.triu(S - T - window + 1)
    return mask


def softcap(z: torch.Tensor, cap: float | None) -> torch.Tensor:
    if cap is None:
        return z
    return torch.tanh(z / cap) * cap


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

    def forward(self, x, cos, sin, cache=None):
        N, K, H = self.cfg.N, self.cfg.K, self.cfg.H
        q = self.w_q(x).unflatten(-1, (N, H))
        k = self.w_k(x).unflatten(-1, (K, H))
        v = self.w_v(x).unflatten(-1, (K, H))
        q, k, v = (torch.einsum("btnh->bnth", t) for t in (q, k, v))
        if self.cfg.qk_norm:
            q = self.q_norm(q)
            k = self.k_norm(k)
        q, k = apply_rope(q, cos, sin), apply_rope(k, cos, sin)
        if cache is not None:
            k, v = cache.append(k, v)
        k, v = repeat_kv(k, N // K), repeat_kv(v, N // K)
        T, S = q.size(2), k.size(2)
        scores = torch.einsum("bnth,bnsh->bnts", q, k) * H**-0.5
        scores = softcap(scores, self.cfg.attn_softcap)
        keep = causal_mask(T, S, self.window, x.device)
        scores = scores.masked_fill(~keep, -torch.inf)
        probs = scores.softmax(dim=-1)
        mixed = torch.einsum("bnts,bnsh->btnh", probs, v)
        return self.w_o(mixed.flatten(-2))
