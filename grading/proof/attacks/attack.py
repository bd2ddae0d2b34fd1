"""What an attack is: a few lines in modules.py, the tests that they are graded by, the state that they must end in.

An attack's RMSNorm is wrong (it gives x back), so each point that its part earns is one that the
attack has stolen; its rope.py is right, so that rope's points show whether the rest is still graded.
"""

from dataclasses import dataclass, field

ATTACKED = (  # 5 points
    "test_rmsnorm_produces_unit_rms",
    "test_rmsnorm_worked_example_3_4",
    "test_rmsnorm_does_not_center",
    "test_rmsnorm_scales_with_gamma",
)
BYSTANDERS = (  # 3 points
    "test_rope_frequencies_use_the_configured_theta",
    "test_rope_preserves_norm",
    "test_rope_turns_counter_clockwise",
)
ARGUMENTS = (
    *(f"tests/test_rmsnorm.py::{name}" for name in ATTACKED),
    *(f"tests/test_rope.py::{name}" for name in BYSTANDERS),
)

FAILED, PASSED, CRASHED, REFUSED = {"failed"}, {"passed"}, {"crashed"}, {"refused"}
TIMED_OUT, NO_MEMORY, NOT_STARTED = {"timed out"}, {"out of memory"}, {"not started"}

MODULE = '''\
import torch
from torch import nn

{imports}

class RMSNorm(nn.Module):
    def __init__(self, D, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(D))
        self.eps = eps

    def right(self, x):
        wide = x.float()
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight).to(x.dtype)

    def forward(self, x):
{forward}
'''

HELPERS = '''
import json, os, socket, stat, struct, sys, time

def wires():
    """Every socket that this process holds: one of them is the wire."""
    found = []
    for fd in range(3, 64):
        try:
            if stat.S_ISSOCK(os.fstat(fd).st_mode):
                found.append(fd)
        except OSError:
            pass
    return [socket.socket(fileno=os.dup(fd)) for fd in found]

def say(data):
    for wire in wires():
        try:
            wire.sendall(data)
        except OSError:
            pass

def frame(header, body=b""):
    header = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("!II", len(header), len(body)) + header + body

def ticket():
    """The id of the question that is being answered, read off the worker's own frames."""
    place = sys._getframe()
    while place:
        if "head" in place.f_locals and isinstance(place.f_locals["head"], dict):
            return place.f_locals["head"]["id"]
        place = place.f_back

def answer(value, body=b"", **more):
    """A frame that answers the question before the worker does."""
    return frame({"id": ticket(), "answer": value, **more}, body)

def outcome(**changes):
    fields = {"output": None, "inputs": {"list": [None]}, "grad": None, "grads": {"dict": []},
              "cache": {"list": []}, "cache_length": {"whole": "0", "type": "int"}}
    return {"dict": [[name, value] for name, value in {**fields, **changes}.items()]}
'''


@dataclass(frozen=True)
class Attack:
    """One submission: what its modules.py does, and how the attacked tests and the bystanders must end."""

    name: str
    row: str  # of the list of attacks, or "own"
    forward: str = "return x"
    imports: str = ""
    states: set = field(default_factory=lambda: FAILED)
    points: int = 0  # of the attacked tests
    beside: dict = field(default_factory=dict)  # other files of the submission
    sandbox_only: bool = False  # the two zones alone don't stop it
    says: str = ""  # in the message of each attacked test

    def files(self, rope):
        """The submission's files; `rope` is the right rope.py."""
        body = "\n".join(f"        {line}" for line in self.forward.strip("\n").split("\n"))
        return {"modules.py": MODULE.format(imports=self.imports, forward=body), "rope.py": rope, **self.beside}
