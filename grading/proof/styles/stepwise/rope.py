import torch


def rope_frequencies(H: int, theta: float = 10_000.0) -> torch.Tensor:
    # one frequency for each pair
    frequencies = []
    for i in range(H // 2):
        frequencies.append(theta ** (-2 * i / H))
    return torch.tensor(frequencies, dtype=torch.float32)


def rope_cos_sin(positions: torch.Tensor, frequencies: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    # angle = position * frequency, with an extra axis for the pairs
    m = positions.to(torch.float32)
    m = m.unsqueeze(-1)
    f = frequencies.to(torch.float32)
    f = f.to(positions.device)
    angle = m * f
    cos = torch.cos(angle)
    sin = torch.sin(angle)
    return cos, sin


def apply_rope(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    # even entries are a, odd entries are b
    a = x[..., 0::2]
    b = x[..., 1::2]
    # rotation of the pair (a, b)
    new_a = a * cos - b * sin
    new_b = a * sin + b * cos
    # put them back in their places
    shape = x.shape
    out = torch.zeros(shape, dtype=new_a.dtype, device=x.device)
    out[..., 0::2] = new_a
    out[..., 1::2] = new_b
    return out.to(x.dtype)
