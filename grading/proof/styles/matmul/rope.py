import torch


def rope_frequencies(H: int, theta: float = 10_000.0) -> torch.Tensor:
    i = torch.arange(0, H, 2, dtype=torch.float64)
    return torch.exp(-i / H * torch.log(torch.tensor(theta, dtype=torch.float64))).float()


def rope_cos_sin(positions: torch.Tensor, frequencies: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    p = positions.double()[..., None]
    ang = p * frequencies.to(positions.device).double()
    return ang.cos().float(), ang.sin().float()


def apply_rope(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    wide = torch.promote_types(x.dtype, cos.dtype)
    upper, lower = torch.stack((cos, -sin), dim=-1), torch.stack((sin, cos), dim=-1)
    R = torch.stack((upper, lower), dim=-2).to(wide)  # (..., T, H/2, 2, 2)
    pairs = x.reshape(*x.shape[:-1], x.shape[-1] // 2, 2, 1).to(wide)
    return (R @ pairs).reshape(x.shape).to(x.dtype)
