import torch
from torch import nn
from torch.nn import functional as F_


class RMSNorm(nn.Module):
    def __init__(self, D: int, eps: float = 1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(D))

    def _norm(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)

    def forward(self, x):
        output = self._norm(x.to(torch.promote_types(x.dtype, torch.float32)))
        return (output * self.weight).type_as(x)


def ffn_dim(D: int, multiplier: float = 1.0, multiple_of: int = 256) -> int:
    hidden_dim = int(multiplier * 8 * D / 3)
    return multiple_of * ((hidden_dim + multiple_of - 1) // multiple_of)


class SwiGLU(nn.Module):

    def __init__(self, D: int, F: int):
        super().__init__()
        self.w_gate = nn.Linear(D, F, bias=False)
        self.w_up = nn.Linear(D, F, bias=False)
        self.w_down = nn.Linear(F, D, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.w_down(F_.silu(self.w_gate(x)) * self.w_up(x))


def rmsnorm_backward(
    x: torch.Tensor, weight: torch.Tensor, eps: float, upstream: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    rrms = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)
    x_hat = x * rrms
    dweight = (upstream * x_hat).reshape(-1, x.shape[-1]).sum(0)
    wdy = upstream * weight
    dx = rrms * (wdy - x_hat * (wdy * x_hat).mean(-1, keepdim=True))
    return dx, dweight
