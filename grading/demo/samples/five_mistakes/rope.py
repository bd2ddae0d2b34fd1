"""RoPE: a position becomes an angle, and each pair of a head's numbers turns by it.

T query length, H head size. Pair i holds the neighbours 2i and 2i + 1 (RoFormer, Meta's Llama
weights, GGUF); Hugging Face pairs i with i + H/2, and its weights are reordered when loaded.

    x  = [ x0 x1 | x2 x3 | x4 x5 | x6 x7 ]      H = 8: four pairs
           turn    turn    turn    turn
          m*f[0]  m*f[1]  m*f[2]  m*f[3]        m the position, f the frequencies

This file is yours to edit: replace every raise below a TODO, keep all names, arguments and __init__.
"""

import torch


# Exercise: rope_frequencies
# What     how fast each of the H/2 pairs turns, in radians per position
# Shapes   H -> (H/2,), fp32 or better
# Formula  theta^(-2i/H), i = 0 .. H/2 - 1
# Decided  the fastest pair comes first: it turns by 1, the last one nearly stands.
# Time     10 minutes, difficulty 1 of 5; our solution: 2 lines
# Check    pytest tests/test_rope.py -k rope_frequencies
def rope_frequencies(H: int, theta: float = 10_000.0) -> torch.Tensor:
    """(H/2,) frequencies theta^(-2i/H), fastest first, fp32 or better.

    Source: Su et al., RoFormer (2021), section 3.2.2.
    """
    return 10_000.0 ** (-torch.arange(0, H, 2).float() / H)


# Exercise: rope_cos_sin
# What     cosine and sine of every position's angle for every pair
# Shapes   positions (..., T), frequencies (H/2,) -> cos, sin of (..., T, H/2)
# Formula  angle = position * frequency
# Decided  positions may start anywhere, differ by row and be fractional: use what is given. The
#          angles are at least fp32 (bf16 can't tell position 257 from 256). The result lies on the
#          positions' device.
# Time     10 minutes, difficulty 2 of 5; our solution: 3 lines
# Check    pytest tests/test_rope.py -k rope_cos_sin
def rope_cos_sin(positions: torch.Tensor, frequencies: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """cos and sin, each (..., T, H/2), of positions (..., T) times frequencies (H/2,).

    Source: Su et al., RoFormer (2021), section 3.4.2.
    """
    angles = positions[..., None].float() * frequencies.float().to(positions.device)
    return torch.cos(angles), torch.sin(angles)


# Exercise: apply_rope
# What     turn every pair of every head by the angle of its position
# Shapes   x (..., T, H), cos and sin (T, H/2) or broadcasting against x's pairs -> (..., T, H)
# Formula  (a, b) -> (a cos - b sin, a sin + b cos), where a = x[2i], b = x[2i + 1]
# Decided  neighbours pair up and turn counter-clockwise. The result has the dtype of x (cos and
#          sin are fp32), and x itself stays as it was.
# Time     20 minutes, difficulty 3 of 5; our solution: 3 lines
# Check    pytest tests/test_rope.py
def apply_rope(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """x (..., T, H) with its neighbouring pairs rotated, in the dtype of x.

    Source: Su et al., RoFormer (2021), equation 34.
    """
    out = torch.empty_like(x)
    out[..., 0::2] = x[..., 0::2] * cos - x[..., 1::2] * sin
    out[..., 1::2] = x[..., 0::2] * sin + x[..., 1::2] * cos
    return out
