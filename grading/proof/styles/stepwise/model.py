import torch
from torch import nn

from nanolm.cache import LayerCache
from nanolm.config import ModelConfig

from .attention import GroupedQueryAttention
from .modules import RMSNorm, SwiGLU


class Block(nn.Module):

    def __init__(self, cfg: ModelConfig, layer: int = 0):
        super().__init__()
        self.attn_norm = RMSNorm(cfg.D, cfg.norm_eps)
        self.attn = GroupedQueryAttention(cfg, layer)
        self.ffn_norm = RMSNorm(cfg.D, cfg.norm_eps)
        self.ffn = SwiGLU(cfg.D, cfg.F)

    def forward(
        self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, cache: LayerCache | None = None
    ) -> torch.Tensor:
        # first branch: attention
        normed_x = self.attn_norm(x)
        attention_output = self.attn(normed_x, cos, sin, cache)
        after_attention = x + attention_output
        # second branch: ffn
        normed_again = self.ffn_norm(after_attention)
        ffn_output = self.ffn(normed_again)
        after_ffn = after_attention + ffn_output
        return after_ffn
