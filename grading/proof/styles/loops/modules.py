import torch
from torch import nn


class RMSNorm(nn.Module):

    def __init__(self, D: int, eps: float = 1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(D))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kind = x.dtype
        if kind == torch.float16 or kind == torch.bfloat16:
            x = x.to(torch.float32)
        D = x.shape[-1]
        total = (x * x).sum(dim=-1)
        rms = (total / D + self.eps).sqrt()
        y = x / rms.unsqueeze(-1)
        y = y * self.weight
        return y.to(kind)


def ffn_dim(D: int, multiplier: float = 1.0, multiple_of: int = 256) -> int:
    F = int(multiplier * (8 * D / 3))
    n = 0
    while n * multiple_of < F:
        n += 1
    return n * multiple_of


class SwiGLU(nn.Module):

    def __init__(self, D: int, F: int):
        super().__init__()
        self.w_gate = nn.Linear(D, F, bias=False)
        self.w_up = nn.Linear(D, F, bias=False)
        self.w_down = nn.Linear(F, D, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        g = self.w_gate(x)
        s = g * g.sigmoid()
        return self.w_down(s * self.w_up(x))


def rmsnorm_backward(
    x: torch.Tensor, weight: torch.Tensor, eps: float, upstream: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    D = len(weight)
    rms = (x.pow(2).sum(-1) / D + eps).sqrt().unsqueeze(-1)
    n = x / rms
    g = upstream * weight
    dx = g / rms - n * ((g * n).sum(-1) / D).unsqueeze(-1) / rms
    dw = torch.zeros_like(weight)
    for u_row, n_row in zip(upstream.reshape(-1, D), n.reshape(-1, D), strict=True):
        dw = dw + u_row * n_row
    return dx, dw
