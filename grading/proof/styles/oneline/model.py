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
        x = x + self.attn(self.attn_norm(x), cos, sin, cache)
        return x + self.ffn(self.ffn_norm(x))
