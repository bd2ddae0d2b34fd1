"""What workers do, done once in the zygote: what it imports and sets up is then there in each of them."""

import socket
from pathlib import Path

import torch
from torch import nn

from nanolm.asking.subject import Subject

from . import wire
from .worker import Answerer


class Stage(nn.Module):
    """The operations that the week's exercises are made of, in no sensible order."""

    def __init__(self, D):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(D))
        self.w = nn.Linear(D, D, bias=False)

    def forward(self, x):
        wide = x.float()
        x = (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)).to(x.dtype) * self.weight
        q = self.w(x).unflatten(-1, (-1, 4)).transpose(1, 2)
        mask = torch.ones(q.shape[-2], q.shape[-2], dtype=torch.bool, device=x.device).tril()
        scores = (q @ q.transpose(-2, -1)).masked_fill(~mask, -torch.inf)
        y = torch.softmax(scores, dim=-1) @ q
        y = y + nn.functional.scaled_dot_product_attention(q, q, q, attn_mask=mask)
        angles = torch.arange(y.shape[-2], device=x.device)[:, None] * torch.ones(2, device=x.device)
        first, second = y[..., 0::2], y[..., 1::2]
        y = torch.stack((first * angles.cos() - second, second * angles.sin() + first), dim=-1).flatten(-2)
        return nn.functional.silu(y.to(x.dtype).transpose(1, 2).flatten(2)) + torch.tanh(x)


class Exercises:
    """An implementation as nanolm.asking.subject asks one."""

    folder = Path("/nowhere")
    RMSNorm = Stage

    @staticmethod
    def softcap(z, cap):
        return cap * torch.tanh(z / cap)


def up():
    """Ask for everything once, on the CPU and on the meta device, through a wire."""
    D, answerer = 8, Answerer(Subject(Exercises()))
    x = torch.linspace(-1.0, 1.0, 2 * 3 * D).view(2, 3, D)
    weights = {"weight": torch.ones(D), "w.weight": torch.ones(D, D)}
    _ask(answerer, "function", "softcap", x, 2.0, kwargs={"upstream": x})
    _ask(answerer, "build", "RMSNorm", D, **{"as": 1})
    _ask(answerer, "copy", "", part=1, **{"as": 2})
    for name, *args in (
        *(("load", weights), ("state",), ("shapes",), ("run", x), ("bfloat16",), ("run", x.bfloat16())),
        *(("double",), ("run", x.double()), ("half",), ("to_meta",), ("run", x.to("meta")), ("counted", x.to("meta"))),
    ):
        _ask(answerer, "method", name, *args, part=1)
    _ask(answerer, "method", "step", x, part=2, kwargs={"upstream": x})
    _ask(answerer, "method", "counted", x, part=2, kwargs={"training": True})


def _ask(answerer, do, name, *args, kwargs=None, **more):
    """One question and its answer, over a wire to ourselves."""
    tensors = []
    values = {"args": wire.encode(args, tensors), "kwargs": wire.encode(kwargs or {}, tensors)}
    ours, theirs = socket.socketpair()
    with ours, theirs:
        wire.send(ours, {"do": do, "name": name, **values, **more}, tensors, wire.within(5))
        head, tensors = wire.receive(theirs, wire.within(5))
        found = []
        answer = wire.encode(answerer.do(head, tensors), found)
        wire.send(theirs, {"answer": answer}, found)
        head, found = wire.receive(ours)
    wire.decode(head["answer"], found)
