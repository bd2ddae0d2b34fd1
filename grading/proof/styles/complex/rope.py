import torch


def reshape_for_complex(x):
    if x.dtype != torch.float64:
        x = x.float()
    return torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2).contiguous())


def rope_frequencies(H: int, theta: float = 10_000.0) -> torch.Tensor:
    freqs = 1.0 / (theta ** (torch.arange(0, H, 2)[: (H // 2)].float() / H))
    return freqs


def rope_cos_sin(positions: torch.Tensor, frequencies: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    t = positions.to(torch.float32)
    freqs = t.unsqueeze(-1) * frequencies.to(device=t.device, dtype=torch.float32)
    return freqs.cos(), freqs.sin()


def apply_rope(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    freqs_cis = torch.complex(cos.float(), sin.float())
    x_ = reshape_for_complex(x)
    x_out = torch.view_as_real(x_ * freqs_cis).flatten(-2)
    return x_out.type_as(x)
