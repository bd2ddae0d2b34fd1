import torch
from torch import nn

from nanolm.cache import LayerCache
from nanolm.config import ModelConfig

from .modules import RMSNorm
from .rope import apply_rope


def repeat_kv(x: torch.Tensor, G: int) -> torch.Tensor:
    # every head G times, next to each other
    B, K, S, H = x.shape
    x = x.unsqueeze(2)
    x = x.repeat(1, 1, G, 1, 1)
    x = x.reshape(B, K * G, S, H)
    return x


def causal_mask(T: int, S: int, window: int | None = None, device=None) -> torch.Tensor:
    if T > S:
        raise ValueError(f"T = {T} queries can't be the last of S = {S} tokens: T must not exceed S.")
    if window is not None and window < 1:
        raise ValueError(f"window = {window} would hide every token: it must be at least 1.")
    # which token is each query, which token is each key
    queries = torch.arange(T, device=device) + (S - T)
    keys = torch.arange(S, device=device)
    queries = queries.view(T, 1)
    keys = keys.view(1, S)
    # a query sees itself and everything before
    allowed = queries >= keys
    # bonus: only the last `window` tokens
    if window is not None:
        not_too_old = keys >= queries - window + 1
        allowed = allowed & not_too_old
    return allowed


def softcap(z: torch.Tensor, cap: float | None) -> torch.Tensor:
    if cap is None:
        return z
    small = z / cap
    squashed = torch.tanh(small)
    return squashed * cap


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
        B = x.shape[0]
        T = x.shape[1]
        N = self.cfg.N
        K = self.cfg.K
        H = self.cfg.H
        # 1. projections
        q = self.w_q(x)  # (B, T, N*H)
        k = self.w_k(x)  # (B, T, K*H)
        v = self.w_v(x)  # (B, T, K*H)
        # 2. split into heads
        q = q.reshape(B, T, N, H)
        k = k.reshape(B, T, K, H)
        v = v.reshape(B, T, K, H)
        q = q.permute(0, 2, 1, 3)  # (B, N, T, H)
        k = k.permute(0, 2, 1, 3)
        v = v.permute(0, 2, 1, 3)
        # 3. bonus: norm of q and k
        if self.cfg.qk_norm:
            q = self.q_norm(q)
            k = self.k_norm(k)
        # 4. positions
        q = apply_rope(q, cos, sin)
        k = apply_rope(k, cos, sin)
        # 5. cache
        if cache is not None:
            k, v = cache.append(k, v)
        S = k.shape[2]
        # 6. every query head needs its key/value head
        G = N // K
        k = repeat_kv(k, G)
        v = repeat_kv(v, G)
        # 7. scores
        scores = torch.matmul(q, k.transpose(2, 3))
        scores = scores / (H ** 0.5)
        if self.cfg.attn_softcap is not None:
            scores = softcap(scores, self.cfg.attn_softcap)
        # 8. hide the future
        mask = causal_mask(T, S, self.window, x.device)
        scores = scores.masked_fill(~mask, float("-inf"))
        # 9. softmax over the keys
        weights = torch.softmax(scores, dim=-1)
        # 10. mix the values
        out = torch.matmul(weights, v)  # (B, N, T, H)
        # 11. join the heads
        out = out.permute(0, 2, 1, 3)
        out = out.reshape(B, T, N * H)
        # 12. output projection
        out = self.w_o(out)
        return out
