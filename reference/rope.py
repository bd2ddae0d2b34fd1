"""RoPE: a position becomes an angle, and each pair of a head's numbers turns by it.

T query length, H head size. Pair i holds the neighbours 2i and 2i + 1 (RoFormer, Meta's Llama
weights, GGUF); Hugging Face pairs i with i + H/2, and its weights are reordered when loaded.

    x  = [ x0 x1 | x2 x3 | x4 x5 | x6 x7 ]      H = 8: four pairs
           turn    turn    turn    turn
          m*f[0]  m*f[1]  m*f[2]  m*f[3]        m the position, f the frequencies
"""

import torch


# exercise: rope_frequencies
# What     how fast each of the H/2 pairs turns, in radians per position
# Shapes   H -> (H/2,), fp32 or better
# Formula  theta^(-2i/H), i = 0 .. H/2 - 1
# Decided  the fastest pair comes first: it turns by 1, the last one nearly stands.
# Time     10 minutes, difficulty 1 of 5
def rope_frequencies(H: int, theta: float = 10_000.0) -> torch.Tensor:
    """(H/2,) frequencies theta^(-2i/H), fastest first, fp32 or better.

    Source: Su et al., RoFormer (2021), section 3.2.2.
    """
    # solution: one frequency for each pair
    exponents = torch.arange(0, H, 2, dtype=torch.float64) / H  # 2i/H, (H/2,)
    return (theta**-exponents).float()
    # end


# exercise: rope_cos_sin
# What     cosine and sine of every position's angle for every pair
# Shapes   positions (..., T), frequencies (H/2,) -> cos, sin of (..., T, H/2)
# Formula  angle = position * frequency
# Decided  positions may start anywhere, differ by row and be fractional: use what is given. The
#          angles are at least fp32 (bf16 can't tell position 257 from 256). The result lies on the
#          positions' device.
# Time     10 minutes, difficulty 2 of 5
def rope_cos_sin(positions: torch.Tensor, frequencies: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """cos and sin, each (..., T, H/2), of positions (..., T) times frequencies (H/2,).

    Source: Su et al., RoFormer (2021), section 3.4.2.
    """
    # solution: every position's angles, their cos and sin
    frequencies = frequencies.to(positions.device, torch.promote_types(frequencies.dtype, torch.float32))
    angles = positions.unsqueeze(-1) * frequencies  # (..., T, 1) * (H/2,) -> (..., T, H/2)
    return angles.cos(), angles.sin()
    # end


# exercise: apply_rope
# What     turn every pair of every head by the angle of its position
# Shapes   x (..., T, H), cos and sin (T, H/2) or broadcasting against x's pairs -> (..., T, H)
# Formula  (a, b) -> (a cos - b sin, a sin + b cos), where a = x[2i], b = x[2i + 1]
# Decided  neighbours pair up and turn counter-clockwise. The result has the dtype of x (cos and
#          sin are fp32), and x itself stays as it was.
# Time     20 minutes, difficulty 3 of 5
def apply_rope(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """x (..., T, H) with its neighbouring pairs rotated, in the dtype of x.

    Source: Su et al., RoFormer (2021), equation 34.
    """
    # solution: turn each pair
    a, b = x[..., 0::2], x[..., 1::2]  # (..., T, H/2) each
    turned = torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1)  # (..., T, H/2, 2)
    return turned.flatten(-2).to(x.dtype)  # (..., T, H)
    # end
