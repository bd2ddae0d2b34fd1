import torch
from torch import nn
from torch.nn import functional as F

from nanolm.cache import LayerCache
from nanolm.config import ModelConfig

from .modules import RMSNorm
from .rope import apply_rope


def repeat_kv(x: torch.Tensor, G: int) -> torch.Tensor:
    batch, num_key_value_heads, slen, head_dim = x.shape
    hidden_states = x[:, :, None, :, :].expand(batch, num_key_value_heads, G, slen, head_dim)
    return hidden_states.reshape(batch, num_key_value_heads * G, slen, head_dim)


def causal_mask(T: int, S: int, window: int | None = None, device=None) -> torch.Tensor:
    if T > S:
        raise ValueError(f"T = {T} queries can't be the last of S = {S} tokens: T must not exceed S.")
    if window is not None and window < 1:
        raise ValueError(f"window = {window} would hide every token: it must be at least 1.")
    cache_position = torch.arange(S - T, S, device=device)
    key_position = torch.arange(S, device=device)
    causal = key_position[None, :] <= cache_position[:, None]
    if window is not None:
        causal = causal & (key_position[None, :] > cache_position[:, None] - window)
    return causal


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

    def forward(
        self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, cache: LayerCache | None = None
    ) -> torch.Tensor:
        bsz, q_len, _ = x.size()
        hidden_shape = (bsz, q_len, -1, self.cfg.H)

        query_states = self.w_q(x).view(hidden_shape).transpose(1, 2)
        key_states = self.w_k(x).view(hidden_shape).transpose(1, 2)
        value_states = self.w_v(x).view(hidden_shape).transpose(1, 2)

        if self.cfg.qk_norm:
            query_states = self.q_norm(query_states)
            key_states = self.k_norm(key_states)

        query_states = apply_rope(query_states, cos, sin)
        key_states = apply_rope(key_states, cos, sin)

        if cache is not None:
            key_states, value_states = cache.append(key_states, value_states)

        key_states = repeat_kv(key_states, self.cfg.N // self.cfg.K)
        value_states = repeat_kv(value_states, self.cfg.N // self.cfg.K)

        attn_weights = torch.matmul(query_states, key_states.transpose(2, 3)) * self.cfg.H**-0.5
        attn_weights = softcap(attn_weights, self.cfg.attn_softcap)
        allowed = causal_mask(q_len, key_states.shape[-2], self.window, x.device)
        causal_bias = torch.zeros(allowed.shape, dtype=attn_weights.dtype, device=x.device)
        causal_bias = causal_bias.masked_fill(~allowed, float("-inf"))
        attn_weights = attn_weights + causal_bias
        attn_weights = F.softmax(attn_weights, dim=-1, dtype=torch.float32).to(query_states.dtype)
        attn_output = torch.matmul(attn_weights, value_states)
        attn_output = attn_output.transpose(1, 2).contiguous()
        attn_output = attn_output.reshape(bsz, q_len, -1)
        return self.w_o(attn_output)
