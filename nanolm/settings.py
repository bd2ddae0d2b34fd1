"""Torch's settings that hold for a whole program: put back after student code, and named where it has changed them."""

from contextlib import contextmanager

import torch
from torch.utils import _device

SETTINGS = {  # the call that changes it -> how it is read, how it is put back
    "torch.set_grad_enabled": (torch.is_grad_enabled, torch.set_grad_enabled),
    "torch.set_default_dtype": (torch.get_default_dtype, torch.set_default_dtype),
    # torch.get_default_device makes a tensor to say it, and would be most of the time of a small call
    "torch.set_default_device": (lambda: _device.CURRENT_DEVICE, torch.set_default_device),
    "torch.set_num_threads": (torch.get_num_threads, torch.set_num_threads),
    "torch.autocast": (lambda: torch.is_autocast_enabled("cpu"), lambda on: torch.set_autocast_enabled("cpu", on)),
    "torch.autograd.set_detect_anomaly": (torch.is_anomaly_enabled, torch.set_anomaly_enabled),
    "torch.use_deterministic_algorithms": (
        torch.are_deterministic_algorithms_enabled,
        lambda on: torch.use_deterministic_algorithms(on),
    ),
    "torch.set_float32_matmul_precision": (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
}
_READ = [(call, read) for call, (read, _) in SETTINGS.items()]


@contextmanager
def kept(changed):
    """Run code of students; then all settings are as before, and the calls that have changed one are in the set."""
    before = [read() for _, read in _READ]
    try:
        yield
    finally:
        for (call, read), value in zip(_READ, before, strict=True):
            if read() != value:
                SETTINGS[call][1](value)
                changed.add(call)
