import torch
from torch import nn

from nanolm.cache import LayerCache
from nanolm.config import ModelConfig

from .modules import RMSNorm
from .rope import apply_rope


def repeat_kv(x: torch.Tensor, G: int) -> torch.Tensor:
    return x.repeat_interleave(G, 1)


def causal_mask(T: int, S: int, window: int | None = None, device=None) -> torch.Tensor:
    if T > S:
        raise ValueError(f"T = {T} queries can't be the last of S = {S} tokens: T must not exceed S.")
    if window is not None and window < 1:
        raise ValueError(f"window = {window} would hide every token: it must be at least 1.")
    d = torch.arange(S - T, S, device=device)[:, None] - torch.arange(S, device=device)
    return (d >= 0) if window is None else (d >= 0) & (d < window)


def softcap(z: torch.Tensor, cap: float | None) -> torch.Tensor:
    if cap is None:
        return z
    return cap * (z / cap).tanh()


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
        c, (B, T, _) = self.cfg, x.shape
        q, k, v = (w(x).view(B, T, -1, c.H).transpose(1, 2) for w in (self.w_q, self.w_k, self.w_v))
        if c.qk_norm:
            q, k = self.q_norm(q), self.k_norm(k)
        q, k = apply_rope(q, cos, sin), apply_rope(k, cos, sin)
        if cache is not None:
            k, v = cache.append(k, v)
        k, v = repeat_kv(k, c.G), repeat_kv(v, c.G)
        s = softcap(q @ k.mT / c.H**0.5, c.attn_softcap)
        p = s.masked_fill(~causal_mask(T, k.shape[2], self.window, x.device), -float("inf")).softmax(-1)
        return self.w_o((p @ v).transpose(1, 2).reshape(B, T, -1))
