"""The meta device as a stand-in for a GPU: it has shapes and devices, and no data.

In two things it is no GPU by itself. A GPU's tensor may be copied to the CPU, into a buffer that was made there or by
.cpu(); from the meta device torch refuses to, as there is nothing to copy: here it arrives, as zeros, and the test sees
on which device the result ends. And a GPU's kernels take no operand from the CPU but a single number or an index, where
the meta device lets some mixtures pass: here none.
"""

import sys
import types
from contextlib import contextmanager

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

MAY_MIX = {"copy_", "_to_copy", "index", "index_put", "index_put_", "_index_put_impl_"}


@contextmanager
def as_on_a_gpu(args):
    """Run a call with these arguments; it makes a difference where one of them is on the meta device, or names it."""
    if not any(str(getattr(arg, "device", arg)) == "meta" for arg in args):
        yield
        return
    device = _AsOnAGpu()
    try:
        with _dynamo_kept_out(), device:
            yield
    except Exception as error:
        if device.read:  # the zeros may be to blame, and not the code
            raise NotImplementedError(f"no data on the meta device, which was read: {error}") from error
        raise


class _AsOnAGpu(TorchDispatchMode):
    """Every operation as a GPU has it; `read` is whether the code has asked for values."""

    def __init__(self):
        super().__init__()
        self.read = False

    @classmethod
    def _should_skip_dynamo(cls):
        return False  # as in nanolm/asking/counting.py

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = operation.overloadpacket.__name__
        if name == "copy_" and args[1].is_meta and not args[0].is_meta:
            return args[0].zero_()
        to = torch.device(kwargs.get("device") or "meta")
        if name == "_to_copy" and args[0].is_meta and to.type != "meta":
            self.read = True
            return torch.zeros(args[0].shape, dtype=kwargs.get("dtype") or args[0].dtype, device=to)
        if name not in MAY_MIX:
            _refuse_two_devices((args, kwargs))
        return operation(*args, **kwargs)


def _refuse_two_devices(given):
    tensors = [value for value in tree_leaves(given) if isinstance(value, torch.Tensor)]
    places = {tensor.device.type for tensor in tensors if tensor.is_meta or tensor.dim() > 0}
    if len(places) > 1:
        found = " and ".join(sorted(places))
        raise RuntimeError(f"Expected all tensors to be on the same device, but found at least two devices, {found}!")


@contextmanager
def _dynamo_kept_out():
    """Spare a call 0.7 s: the device's kernels import torch._dynamo only to be left uncompiled.

    They ask it for one function, which may as well hand them back as they are. A program that has
    imported torch._dynamo already (by torch.compile) keeps the real one.
    """
    if "torch._dynamo" in sys.modules:
        yield
        return
    stand_in = types.ModuleType("torch._dynamo")
    stand_in.disable = lambda function, *args, **kwargs: function
    sys.modules["torch._dynamo"] = stand_in
    try:
        yield
    finally:
        del sys.modules["torch._dynamo"]
