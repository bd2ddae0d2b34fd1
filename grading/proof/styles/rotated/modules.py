import torch
from torch import nn
from torch.nn.functional import silu


class RMSNorm(nn.Module):

    def __init__(self, D: int, eps: float = 1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(D))

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        input_dtype = hidden_states.dtype
        hidden_states = hidden_states.to(torch.promote_types(input_dtype, torch.float32))
        variance = hidden_states.pow(2).mean(-1, keepdim=True)
        hidden_states = hidden_states * torch.rsqrt(variance + self.eps)
        return (self.weight * hidden_states).to(input_dtype)


def ffn_dim(D: int, multiplier: float = 1.0, multiple_of: int = 256) -> int:
    intermediate_size = int(multiplier * 8 * D / 3)
    remainder = intermediate_size % multiple_of
    if remainder != 0:
        intermediate_size += multiple_of - remainder
    return intermediate_size


class SwiGLU(nn.Module):

    def __init__(self, D: int, F: int):
        super().__init__()
        self.w_gate = nn.Linear(D, F, bias=False)
        self.w_up = nn.Linear(D, F, bias=False)
        self.w_down = nn.Linear(F, D, bias=False)

    def forward(self, x):
        gate_output = self.w_gate(x)
        gated = silu(gate_output)
        up_output = self.w_up(x)
        down_proj = self.w_down(gated * up_output)
        return down_proj


def rmsnorm_backward(
    x: torch.Tensor, weight: torch.Tensor, eps: float, upstream: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    variance = x.pow(2).mean(-1, keepdim=True)
    inv_rms = torch.rsqrt(variance + eps)
    hidden = x * inv_rms
    grad_weight = upstream * hidden
    while grad_weight.dim() > 1:
        grad_weight = grad_weight.sum(0)
    grad_hidden = upstream * weight
    grad_x = inv_rms * grad_hidden - inv_rms * hidden * (grad_hidden * hidden).mean(-1, keepdim=True)
    return grad_x, grad_weight
