import torch
import torch.nn.functional as F
from torch import nn

from nanolm.cache import LayerCache
from nanolm.config import ModelConfig

from .modules import RMSNorm
from .rope import apply_rope


def split_heads(x, heads):
    return x.unflatten(-1, (heads, -1)).movedim(-2, 1)


def join_heads(x):
    return x.movedim(1, -2).flatten(-2)


def attend(q, k, v, mask, cap):
    if cap is None:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    scores = torch.matmul(q, k.transpose(-1, -2)).div(q.size(-1) ** 0.5)
    scores = softcap(scores, cap)
    return torch.matmul(scores.masked_fill(~mask, float("-inf")).softmax(-1), v)


def repeat_kv(x: torch.Tensor, G: int) -> torch.Tensor:
    b, k, s, h = x.shape
    return x.reshape(b, k, 1, s, h).expand(b, k, G, s, h).reshape(b, k * G, s, h)


def causal_mask(T: int, S: int, window: int | None = None, device=None) -> torch.Tensor:
    if T > S:
        raise ValueError(f"T = {T} queries can't be the last of S = {S} tokens: T must not exceed S.")
    if window is not None and window < 1:
        raise ValueError(f"window = {window} would hide every token: it must be at least 1.")
    query = torch.arange(T, device=device)[:, None] + S - T
    key = torch.arange(S, device=device)[None, :]
    age = query - key
    mask = age >= 0
    if window is not None:
        mask = mask & (age <= window - 1)
    return mask


def softcap(z: torch.Tensor, cap: float | None) -> torch.Tensor:
    if cap is None:
        return z
    return torch.mul(torch.tanh(torch.div(z, cap)), cap)


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
        q = split_heads(self.w_q(x), self.cfg.N)
        k = split_heads(self.w_k(x), self.cfg.K)
        v = split_heads(self.w_v(x), self.cfg.K)
        if self.cfg.qk_norm:
            q, k = self.q_norm(q), self.k_norm(k)
        q, k = (apply_rope(t, cos, sin) for t in (q, k))
        if cache is not None:
            k, v = cache.append(k, v)
        k, v = (repeat_kv(t, self.cfg.G) for t in (k, v))
        mask = causal_mask(q.size(2), k.size(2), self.window, q.device)
        return self.w_o(join_heads(attend(q, k, v, mask, self.cfg.attn_softcap)))
