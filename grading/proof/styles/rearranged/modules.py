import torch
from torch import nn


def at_least_fp32(t):
    return t.to(torch.promote_types(t.dtype, torch.float32))


def silu(t):
    return t * torch.sigmoid(t)


class RMSNorm(nn.Module):

    def __init__(self, D: int, eps: float = 1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(D))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        t = at_least_fp32(x)
        rms = torch.linalg.vector_norm(t, dim=-1, keepdim=True).square().div(t.size(-1)).add(self.eps).sqrt()
        return t.div(rms).mul(self.weight).to(x.dtype)


def ffn_dim(D: int, multiplier: float = 1.0, multiple_of: int = 256) -> int:
    import math

    return math.ceil(int(multiplier * 8 * D / 3) / multiple_of) * multiple_of


class SwiGLU(nn.Module):

    def __init__(self, D: int, F: int):
        super().__init__()
        self.w_gate = nn.Linear(D, F, bias=False)
        self.w_up = nn.Linear(D, F, bias=False)
        self.w_down = nn.Linear(F, D, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        content, gate = self.w_up(x), self.w_gate(x)
        return self.w_down(content.mul(silu(gate)))


def rmsnorm_backward(
    x: torch.Tensor, weight: torch.Tensor, eps: float, upstream: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    rms = (x.square().mean(-1, keepdim=True) + eps).sqrt()
    unit = x.div(rms)
    pull = upstream.mul(weight)
    dx = (pull - unit.mul(pull.mul(unit).mean(-1, keepdim=True))).div(rms)
    return dx, upstream.mul(unit).reshape(-1, x.size(-1)).sum(0)
