import torch


def rope_frequencies(H: int, theta: float = 10_000.0) -> torch.Tensor:
    return theta ** (-2 * torch.arange(H // 2) / H)


def rope_cos_sin(positions: torch.Tensor, frequencies: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    a = positions.unsqueeze(-1).float() * frequencies.to(positions.device)
    return a.cos(), a.sin()


def apply_rope(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    a, b = x.unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack((a * cos - b * sin, b * cos + a * sin), -1).flatten(-2).to(x.dtype)
