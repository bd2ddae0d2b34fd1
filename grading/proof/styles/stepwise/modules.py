import torch
from torch import nn


class RMSNorm(nn.Module):

    def __init__(self, D: int, eps: float = 1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(D))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        # remember the dtype so that we can go back to it at the end
        old_dtype = x.dtype
        # the squares must not overflow, so use float32 (but float64 stays float64!)
        if x.dtype == torch.float64:
            x_big = x
        else:
            x_big = x.to(torch.float32)
        # step 1: square every entry
        squares = x_big * x_big
        # step 2: mean over the last axis, keep the axis so that we can divide later
        mean_of_squares = torch.mean(squares, dim=-1, keepdim=True)
        # step 3: the root, eps is inside!
        root = torch.sqrt(mean_of_squares + self.eps)
        # step 4: divide
        normed = x_big / root
        # step 5: the gain
        result = normed * self.weight
        # step 6: back to the old dtype
        return result.to(old_dtype)


def ffn_dim(D: int, multiplier: float = 1.0, multiple_of: int = 256) -> int:
    # 8D/3 because 3 matrices should cost what 2 matrices of 4D cost
    width = 8 * D / 3
    # the multiplier comes before the rounding
    width = int(width * multiplier)
    # round up
    while width % multiple_of != 0:
        width = width + 1
    return width


class SwiGLU(nn.Module):

    def __init__(self, D: int, F: int):
        super().__init__()
        self.w_gate = nn.Linear(D, F, bias=False)
        self.w_up = nn.Linear(D, F, bias=False)
        self.w_down = nn.Linear(F, D, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        # the gate decides how much passes
        gate = self.w_gate(x)
        # silu(z) = z * sigmoid(z)
        gate = gate * torch.sigmoid(gate)
        # the content
        up = self.w_up(x)
        # multiply them entry by entry
        hidden = gate * up
        # and back to D
        out = self.w_down(hidden)
        return out


def rmsnorm_backward(
    x: torch.Tensor, weight: torch.Tensor, eps: float, upstream: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    number_of_channels = x.shape[-1]
    root = torch.sqrt((x * x).sum(dim=-1, keepdim=True) / number_of_channels + eps)
    normed = x / root
    # gradient of the gain: sum over all rows
    grad_weight = (upstream * normed).reshape(-1, number_of_channels).sum(dim=0)
    # gradient of x
    g = upstream * weight
    dot = (g * normed).sum(dim=-1, keepdim=True)
    part_along = normed * dot / number_of_channels
    grad_x = (g - part_along) / root
    return grad_x, grad_weight
