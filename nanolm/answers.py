"""What comes back as an answer: data. A tensor that is not of plain real numbers is only named."""

import torch

REAL = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        *(torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.bool),
        *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8),
    )
}


class Foreign:
    """Something that is no data: it stands for its type, whose name its own type has."""

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return self.name


def foreign(name):
    """A Foreign of this name."""
    return type(name, (Foreign,), {})(name)


def plain(value):
    """Only data: tensors without history or subclass, numbers, tuples and lists of them."""
    if isinstance(value, torch.Tensor):
        kind = odd_kind(value)
        return foreign(kind) if kind else value.detach().as_subclass(torch.Tensor).clone().resolve_neg()
    if isinstance(value, (tuple, list)):
        return type(value)(plain(item) for item in value)
    return value


def odd_kind(tensor):
    """What a tensor is that holds no plain real numbers, in words; empty for one that does."""
    dtype = str(tensor.dtype).removeprefix("torch.")
    layout = str(tensor.layout).removeprefix("torch.").removeprefix("_")
    if tensor.is_nested:
        return "nested tensor"
    if layout != "strided":
        return f"{layout} tensor"
    return f"{dtype} tensor" if tensor.is_quantized or tensor.dtype not in REAL.values() else ""
