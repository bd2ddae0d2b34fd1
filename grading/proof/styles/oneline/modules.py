import torch
from torch import nn


class RMSNorm(nn.Module):

    def __init__(self, D: int, eps: float = 1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(D))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x.to(torch.promote_types(x.dtype, torch.float32))
        return (y / (y.norm(dim=-1, keepdim=True) ** 2 / y.shape[-1] + self.eps) ** 0.5 * self.weight).to(x.dtype)


def ffn_dim(D: int, multiplier: float = 1.0, multiple_of: int = 256) -> int:
    return (int(8 * D / 3 * multiplier) + multiple_of - 1) // multiple_of * multiple_of


class SwiGLU(nn.Module):

    def __init__(self, D: int, F: int):
        super().__init__()
        self.w_gate = nn.Linear(D, F, bias=False)
        self.w_up = nn.Linear(D, F, bias=False)
        self.w_down = nn.Linear(F, D, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.w_down((g := self.w_gate(x)) * g.sigmoid() * self.w_up(x))


def rmsnorm_backward(
    x: torch.Tensor, weight: torch.Tensor, eps: float, upstream: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    r = (x.square().mean(-1, True) + eps).sqrt()
    n, g = x / r, upstream * weight
    return (g - n * (g * n).mean(-1, True)) / r, (upstream * n).view(-1, x.shape[-1]).sum(0)
