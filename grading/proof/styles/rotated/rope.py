import torch


def rotate_every_two(x):
    x1 = x[..., ::2]
    x2 = x[..., 1::2]
    return torch.stack((-x2, x1), dim=-1).flatten(-2)


def rope_frequencies(H: int, theta: float = 10_000.0) -> torch.Tensor:
    inv_freq = 1.0 / (theta ** (torch.arange(0, H, 2, dtype=torch.int64).float() / H))
    return inv_freq


def rope_cos_sin(positions: torch.Tensor, frequencies: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    inv_freq = frequencies.to(positions.device).float()
    freqs = positions[..., None].float() * inv_freq
    return freqs.cos(), freqs.sin()


def apply_rope(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    cos = cos.repeat_interleave(2, dim=-1)
    sin = sin.repeat_interleave(2, dim=-1)
    x_embed = (x * cos) + (rotate_every_two(x) * sin)
    return x_embed.to(x.dtype)
