"""RMSNorm and SwiGLU, the two parts of the block that see one token at a time.

D width, F FFN width. A leading "..." stands for any number of axes: (T,), (B, T) or none.

This file is yours to edit: replace every raise below a TODO, keep all names, arguments and __init__.
"""

import torch
from torch import nn


# Exercise: RMSNorm.forward
# What     divide each token's vector by its root mean square, then multiply by the learned gain
# Shapes   x (..., D) -> (..., D), in the dtype of x
# Formula  x / sqrt(mean(x^2) + eps) * weight, the mean over D
# Decided  eps stands inside the root. The arithmetic runs in at least fp32 (fp16 overflows at a
#          square of 256). The cast back may come before or after the gain: the result has the dtype of x
#          even where the gain has another one. fp64 may stay fp64 or pass through fp32.
# Time     10 minutes, difficulty 1 of 5; our solution: 3 lines
# Check    pytest tests/test_rmsnorm.py
class RMSNorm(nn.Module):
    """Root mean square norm over the last axis, with a learned gain `weight` of shape (D,).

    Source: Zhang and Sennrich, Root Mean Square Layer Normalization (2019), section 4.
    """

    def __init__(self, D: int, eps: float = 1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(D))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(..., D) -> (..., D), in the dtype of x."""
        # TODO: norm each vector, then the gain
        raise NotImplementedError("exercises_en/modules.py: RMSNorm.forward is not started. "
                                  "Check it with: pytest tests/test_rmsnorm.py")


# Exercise: ffn_dim
# What     the width F that gives a gated FFN (three matrices) the parameters of a plain one at 4D
# Shapes   D -> F, both int
# Formula  3 * D * F = 2 * D * 4D, so F = 8D / 3; times the multiplier; then up to the next multiple
# Decided  it rounds up, never to the nearest: D 4096 gives 11008; with multiplier 1.3 and multiple
#          1024 (Llama 3 8B) 14336.
# Time     10 minutes, difficulty 1 of 5; our solution: 2 lines
# Check    pytest tests/test_budget.py -k ffn_dim
def ffn_dim(D: int, multiplier: float = 1.0, multiple_of: int = 256) -> int:
    """The FFN width of width D: 8D/3 times `multiplier`, rounded up to a multiple of `multiple_of`.

    Source: Shazeer, GLU Variants Improve Transformer (2020), section 2; the rounding is Llama's.
    """
    # TODO: 8D/3, the multiplier, round up
    raise NotImplementedError("exercises_en/modules.py: ffn_dim is not started. "
                              "Check it with: pytest tests/test_budget.py -k ffn_dim")


# Exercise: SwiGLU.forward
# What     one projection carries the content (up), a second decides how much passes (gate), down
#          brings the width back
# Shapes   x (..., D) -> gate and up (..., F) -> (..., D)
# Formula  w_down(silu(w_gate(x)) * w_up(x)), silu(z) = z * sigmoid(z)
# Decided  w_gate carries the SiLU. There are no biases.
# Time     10 minutes, difficulty 1 of 5; our solution: 2 lines
# Check    pytest tests/test_swiglu.py
class SwiGLU(nn.Module):
    """Gated FFN: `w_gate`, `w_up` of shape (F, D) and `w_down` of shape (D, F), bias-free.

    Source: Shazeer, GLU Variants Improve Transformer (2020), equation 6.
    """

    def __init__(self, D: int, F: int):
        super().__init__()
        self.w_gate = nn.Linear(D, F, bias=False)
        self.w_up = nn.Linear(D, F, bias=False)
        self.w_down = nn.Linear(F, D, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(..., D) -> (..., D), in the dtype of x."""
        # TODO: gate, up, down
        raise NotImplementedError("exercises_en/modules.py: SwiGLU.forward is not started. "
                                  "Check it with: pytest tests/test_swiglu.py")


# Bonus exercise: rmsnorm_backward
# What     the gradient of RMSNorm by hand, without autograd
# Shapes   x and upstream (..., D), weight (D,) -> gradient of x (..., D), gradient of weight (D,)
# Formula  with r = sqrt(mean(x^2) + eps), n = x / r and g = upstream * weight:
#          the weight gets upstream * n summed over all rows; x gets g with its part along n removed,
#          over r. Work out how much "its part along n" is: D stands in it.
# Decided  eps stands inside the root, as above. x comes in fp32 or fp64 and need not be cast.
# Time     30 minutes, difficulty 4 of 5; our solution: 5 lines
# Check    pytest tests/test_backward.py
def rmsnorm_backward(
    x: torch.Tensor, weight: torch.Tensor, eps: float, upstream: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Gradients of RMSNorm's x (..., D) and weight (D,), given the output's gradient (..., D).

    Source: Zhang and Sennrich, Root Mean Square Layer Normalization (2019), section 4.
    """
    # TODO: both gradients by hand
    raise NotImplementedError("exercises_en/modules.py: rmsnorm_backward is not started. "
                              "Check it with: pytest tests/test_backward.py")
