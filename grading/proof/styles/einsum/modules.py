import torch
import torch.nn.functional as tf
from torch import nn


class RMSNorm(nn.Module):

    def __init__(self, D: int, eps: float = 1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(D))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = x if x.dtype == torch.float64 else x.float()
        mean_sq = torch.einsum("...d,...d->...", h, h) / h.size(-1)
        inv = 1.0 / torch.sqrt(mean_sq + self.eps)
        out = torch.einsum("...d,...,d->...d", h, inv, self.weight.to(h.dtype))
        return out.to(x.dtype)


def ffn_dim(D: int, multiplier: float = 1.0, multiple_of: int = 256) -> int:
    import math

    F = math.floor(8 * D / 3 * multiplier)
    return multiple_of * math.ceil(F / multiple_of)


class SwiGLU(nn.Module):

    def __init__(self, D: int, F: int):
        super().__init__()
        self.w_gate = nn.Linear(D, F, bias=False)
        self.w_up = nn.Linear(D, F, bias=False)
        self.w_down = nn.Linear(F, D, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate = torch.einsum("...d,fd->...f", x, self.w_gate.weight)
        up = torch.einsum("...d,fd->...f", x, self.w_up.weight)
        hidden = tf.silu(gate) * up
        return torch.einsum("...f,df->...d", hidden, self.w_down.weight)


def rmsnorm_backward(
    x: torch.Tensor, weight: torch.Tensor, eps: float, upstream: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    inv = (torch.einsum("...d,...d->...", x, x) / x.size(-1) + eps).rsqrt()[..., None]
    normed = x * inv
    g = upstream * weight
    along = torch.einsum("...d,...d->...", g, normed)[..., None] / x.size(-1)
    dw = torch.einsum("nd,nd->d", upstream.reshape(-1, x.size(-1)), normed.reshape(-1, x.size(-1)))
    return inv * (g - normed * along), dw
