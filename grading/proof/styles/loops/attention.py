import torch
from torch import nn

from nanolm.cache import LayerCache
from nanolm.config import ModelConfig

from .modules import RMSNorm
from .rope import apply_rope


def repeat_kv(x: torch.Tensor, G: int) -> torch.Tensor:
    heads = []
    for k in range(x.shape[1]):
        for _ in range(G):
            heads.append(x[:, k])
    return torch.stack(heads, dim=1)


def causal_mask(T: int, S: int, window: int | None = None, device=None) -> torch.Tensor:
    if T > S:
        raise ValueError(f"T = {T} queries can't be the last of S = {S} tokens: T must not exceed S.")
    if window is not None and window < 1:
        raise ValueError(f"window = {window} would hide every token: it must be at least 1.")
    mask = torch.zeros(T, S, dtype=torch.bool, device=device)
    for t in range(T):
        own = S - T + t
        first = 0 if window is None else max(0, own - window + 1)
        mask[t, first : own + 1] = True
    return mask


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
        B, T, _ = x.shape
        N, K, H, G = self.cfg.N, self.cfg.K, self.cfg.H, self.cfg.G
        q = self.w_q(x).view(B, T, N, H).transpose(1, 2)
        k = self.w_k(x).view(B, T, K, H).transpose(1, 2)
        v = self.w_v(x).view(B, T, K, H).transpose(1, 2)
        if self.cfg.qk_norm:
            q = self.q_norm(q)
            k = self.k_norm(k)
        q = apply_rope(q, cos, sin)
        k = apply_rope(k, cos, sin)
        if cache is not None:
            k, v = cache.append(k, v)
        mask = causal_mask(T, k.shape[2], self.window, x.device)
        outs = []
        for n in range(N):
            qn = q[:, n]
            kn = k[:, n // G]
            vn = v[:, n // G]
            score = qn @ kn.transpose(1, 2) / H**0.5
            score = softcap(score, self.cfg.attn_softcap)
            score = score.masked_fill(~mask, float("-inf"))
            p = torch.softmax(score, dim=-1)
            outs.append(p @ vn)
        y = torch.cat(outs, dim=-1)
        return self.w_o(y)
