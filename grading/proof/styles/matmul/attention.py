import torch
from torch import nn

from nanolm.cache import LayerCache
from nanolm.config import ModelConfig

from .modules import RMSNorm
from .rope import apply_rope


def repeat_kv(x: torch.Tensor, G: int) -> torch.Tensor:
    return torch.stack([x] * G, dim=2).flatten(1, 2)


def causal_mask(T: int, S: int, window: int | None = None, device=None) -> torch.Tensor:
    if T > S:
        raise ValueError(f"T = {T} queries can't be the last of S = {S} tokens: T must not exceed S.")
    if window is not None and window < 1:
        raise ValueError(f"window = {window} would hide every token: it must be at least 1.")
    offset = S - T
    rows = torch.arange(T, device=device).reshape(-1, 1) + offset
    cols = torch.arange(S, device=device).reshape(1, -1)
    hidden = cols > rows
    if window is not None:
        hidden = hidden | (cols < rows - (window - 1))
    return ~hidden


def softcap(z: torch.Tensor, cap: float | None) -> torch.Tensor:
    if cap is None:
        return z
    return cap * torch.tanh(z / cap)


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
        N, K, H, G = self.cfg.N, self.cfg.K, self.cfg.H, self.cfg.G
        B, T, D = x.shape

        def heads(y, n):
            return y.reshape(B, T, n, H).swapaxes(1, 2)

        q = heads(self.w_q(x), N)
        k = heads(self.w_k(x), K)
        v = heads(self.w_v(x), K)
        if self.cfg.qk_norm:
            q = self.q_norm(q)
            k = self.k_norm(k)
        q = apply_rope(q, cos, sin)
        k = apply_rope(k, cos, sin)
        if cache is not None:
            k, v = cache.append(k, v)
        S = k.shape[-2]
        # no repeat: (B, K, G, T, H) against (B, K, 1, S, H)
        q = q.reshape(B, K, G, T, H)
        k, v = k.unsqueeze(2), v.unsqueeze(2)
        att = (q @ k.swapaxes(-1, -2)) / H**0.5
        att = softcap(att, self.cfg.attn_softcap)
        m = causal_mask(T, S, self.window, device=x.device)
        att = att.masked_fill(m.logical_not(), float("-inf"))
        att = att - att.amax(-1, keepdim=True)
        e = att.exp()
        p = e / e.sum(-1, keepdim=True)
        o = (p @ v).reshape(B, N, T, H).swapaxes(1, 2).reshape(B, T, N * H)
        return self.w_o(o)
