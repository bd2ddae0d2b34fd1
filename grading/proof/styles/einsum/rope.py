import torch


def rope_frequencies(H: int, theta: float = 10_000.0) -> torch.Tensor:
    i = torch.arange(H // 2).float()
    return torch.pow(torch.tensor(float(theta)), -2 * i / H)


def rope_cos_sin(positions: torch.Tensor, frequencies: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    freqs = frequencies.to(positions.device).float()
    angles = torch.einsum("...t,f->...tf", positions.float(), freqs)
    return angles.cos(), angles.sin()


def apply_rope(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    pairs = x.unflatten(-1, (-1, 2))
    first, second = pairs.unbind(dim=-1)
    turned_first = first * cos - second * sin
    turned_second = first * sin + second * cos
    return torch.stack([turned_first, turned_second], -1).reshape(x.shape).to(x.dtype)
