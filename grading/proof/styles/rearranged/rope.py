import torch


def rotate(pairs, cos, sin):
    even, odd = pairs[..., 0], pairs[..., 1]
    return torch.cat([(even * cos - odd * sin).unsqueeze(-1), (odd * cos + even * sin).unsqueeze(-1)], dim=-1)


def rope_frequencies(H: int, theta: float = 10_000.0) -> torch.Tensor:
    return torch.tensor([1.0 / theta ** (2 * i / H) for i in range(H // 2)])


def rope_cos_sin(positions: torch.Tensor, frequencies: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    angles = torch.mul(positions.float().unsqueeze(-1), frequencies.float().to(positions.device))
    return torch.cos(angles), torch.sin(angles)


def apply_rope(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    *lead, H = x.shape
    pairs = x.reshape(*lead, H // 2, 2)
    return rotate(pairs, cos, sin).reshape(*lead, H).to(x.dtype)
