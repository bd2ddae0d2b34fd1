"""What a call makes torch do, counted without a clock: operations, bytes alive, waits, copies.

Torch shows every operation to a TorchDispatchMode, those of the backward pass too as long as it
runs on the CPU. What a fused kernel holds inside it is not seen, which is as it should be.
"""

import gc

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

COUNTS = {
    "operations": "calls of a torch operation",
    "trigonometry": "those that make angles into a table: cos, sin, polar, a complex exponential",
    "widened": "entries of weight matrices that were copied into a wider dtype",
    "waits": "those after which a GPU's program must wait for a value: item(), tolist(), a mask as an index",
    "copies": "those that take a tensor to another device",
    "ready_made": "calls of torch's own RMSNorm, by whatever name",
    "bytes": "the most bytes that were alive at once, in all that was touched",
    "kept": "bytes that were made and are still alive when the next call is over",
}

READY_MADE = {"rms_norm", "_fused_rms_norm"}
TURNS = {"cos", "sin", "tan", "polar"}
WAITS = {"_local_scalar_dense", "nonzero", "masked_select", "equal", "_unique2", "unique_consecutive", "unique_dim"}


class Counting(TorchDispatchMode):
    """`with Counting(module) as counting:` run it; `counting.counts` has a number for each of COUNTS."""

    def __init__(self, module):
        super().__init__()
        self.counts = dict.fromkeys(COUNTS, 0)
        self._matrices = {_storage(p) for p in module.parameters() if p.dim() > 1}
        self._alive = {}  # storage -> its bytes, also of some that have gone since
        self._sum = 0  # of these bytes
        self._given, self._made = set(), {}  # storages that came in; those that were made, and their bytes
        self._methods = _Methods(self.counts)

    @classmethod
    def _should_skip_dynamo(cls):
        return False  # torch would import its compiler, a second long, to be told that nothing is compiled here

    def __enter__(self):
        self._methods.__enter__()
        return super().__enter__()

    def __exit__(self, *raised):
        super().__exit__(*raised)
        self._methods.__exit__(*raised)

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        result = operation(*args, **(kwargs or {}))
        name = operation.overloadpacket.__name__.rstrip("_")
        given, made = _tensors((*args, *(kwargs or {}).values())), _tensors((result,))
        counts = self.counts
        counts["operations"] += 1
        counts["trigonometry"] += name in TURNS or name == "exp" and made[0].is_complex()
        counts["waits"] += name in WAITS or name == "index" and any(tensor.dtype == torch.bool for tensor in given[1:])
        if name in ("_to_copy", "copy"):
            counts["copies"] += len({tensor.device.type for tensor in (*given, *made)}) > 1
        counts["widened"] += sum(
            a.numel() for a in given for b in made if a.dtype != b.dtype and self._is_widened(a, b)
        )
        self._given.update(_storage(tensor) for tensor in given)
        self._note_bytes(made)
        return result

    def after_the_next_call(self):
        """Count what is kept."""
        gc.collect()  # what only holds itself is kept by nobody
        self.counts["kept"] = sum(size for storage, size in self._made.items() if not storage.expired())

    def _is_widened(self, a, b):
        floating = a.is_floating_point() and b.is_floating_point()
        wider = floating and b.element_size() > a.element_size() and b.numel() == a.numel()
        return wider and _storage(a) in self._matrices

    def _note_bytes(self, made):
        for tensor in made:
            storage, size = _storage(tensor), tensor.untyped_storage().nbytes()
            self._sum += size - self._alive.get(storage, 0)
            self._alive[storage] = size
            if storage not in self._given:
                self._made[storage] = size
        if self._sum > self.counts["bytes"]:  # only then does it matter which of them have gone
            self._alive = {storage: size for storage, size in self._alive.items() if not storage.expired()}
            self._sum = sum(self._alive.values())
            self.counts["bytes"] = max(self.counts["bytes"], self._sum)


class _Methods(TorchFunctionMode):
    """Calls that are no operation on the CPU, and a wait or a copy on a GPU; and those of ready-made parts."""

    def __init__(self, counts):
        super().__init__()
        self._counts = counts

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = getattr(function, "__name__", "").split(".")[0]  # an overload has another word behind a point
        self._counts["ready_made"] += name in READY_MADE
        self._counts["waits"] += name in ("tolist", "numpy")
        from_numbers = name in ("tensor", "as_tensor") and str(kwargs.get("device") or "cpu") != "cpu"
        self._counts["copies"] += name in ("cpu", "cuda") or from_numbers
        return function(*args, **kwargs)


def _storage(tensor):
    return StorageWeakRef(tensor.untyped_storage())


def _tensors(values):
    found = []
    for value in values:
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, (tuple, list)):
            found += _tensors(value)
    return found
