import torch
from torch import nn


class RMSNorm(nn.Module):

    def __init__(self, D: int, eps: float = 1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(D))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        dtype = x.dtype
        if dtype in (torch.float16, torch.bfloat16):
            x = x.float()
        ms = (x**2).sum(-1, keepdim=True) / x.shape[-1]
        return (self.weight * (x * (ms + self.eps) ** -0.5)).to(dtype)


def ffn_dim(D: int, multiplier: float = 1.0, multiple_of: int = 256) -> int:
    q, r = divmod(int(D * 8 * multiplier / 3), multiple_of)
    return (q + (r > 0)) * multiple_of


class SwiGLU(nn.Module):

    def __init__(self, D: int, F: int):
        super().__init__()
        self.w_gate = nn.Linear(D, F, bias=False)
        self.w_up = nn.Linear(D, F, bias=False)
        self.w_down = nn.Linear(F, D, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        g = x @ self.w_gate.weight.T
        u = x @ self.w_up.weight.T
        return (u * (g * torch.sigmoid(g))) @ self.w_down.weight.T


def rmsnorm_backward(
    x: torch.Tensor, weight: torch.Tensor, eps: float, upstream: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    inv = ((x**2).mean(-1, keepdim=True) + eps) ** -0.5
    n = x * inv
    g = upstream * weight
    dx = inv * (g - (g * n).mean(-1, keepdim=True) * n)
    dw = (upstream * n).reshape(-1, len(weight)).sum(dim=0)
    return dx, dw
