import torch


def rope_frequencies(H: int, theta: float = 10_000.0) -> torch.Tensor:
    f = torch.zeros(H // 2)
    for i in range(H // 2):
        f[i] = 1 / theta ** (2 * i / H)
    return f


def rope_cos_sin(positions: torch.Tensor, frequencies: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    columns = [positions.float() * f for f in frequencies.float().to(positions.device)]
    angles = torch.stack(columns, dim=-1)
    return angles.cos(), angles.sin()


def apply_rope(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    out = []
    for i in range(x.shape[-1] // 2):
        a = x[..., 2 * i]
        b = x[..., 2 * i + 1]
        c = cos[..., i]
        s = sin[..., i]
        out.append(a * c - b * s)
        out.append(a * s + b * c)
    return torch.stack(out, dim=-1).to(x.dtype)
