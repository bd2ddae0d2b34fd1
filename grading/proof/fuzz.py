"""`python -m grading fuzz`: bytes from nobody against all that the trusted side reads of a submission.

Each target takes bytes and may only return or raise the error that it names, within a second. What it is given is
drawn from a seed and said on failure, so that a failure comes again.
"""

import json
import random
import socket
import struct
import time

import torch

from grading.grader.inside import wire
from grading.grader.inside.text import clean
from grading.grader.workers import error_of
from nanolm.config import preset
from nanolm.source import FILE_LIMIT, SourceError, imported, taken_from_torch, text_of, tree_of

HELP = "throw made-up bytes at all that the trusted side reads of a submission, for some seconds"
SECONDS_EACH = 1.0  # of the processor: none of it may take longer
WORDS = (
    *(b"text", b"whole", b"real", b"list", b"tuple", b"dict", b"config", b"object", b"tensor", b"meta", b"type"),
    *(b"dtype", b"complex", b"answer", b"error", b"id", b"null", b"true", b"NaN", b"1e999", b"-0", b"0x1p-1074"),
    *(b"[", b"]", b"{", b"}", b":", b",", b'"', b"\\u0000", b"\xff", b"\x00", b"9" * 90, b"[" * 500, b"F32", b"shape"),
    *(b"# coding: ", b"latin-1", b"gbk", b"utf-7", b"idna", b"import torch", b"torch", b".a" * 300, b"(" * 300),
    *(b"-" * 5_000, b"\n", b"\r", b"\x0c", b"def f(:", b"<<<<<<< ", b"\xfe\xff", b"\xef\xbb\xbf", b"lambda:" * 90),
)


class Fault(Exception):
    """A target did what it must not; the message says which and for what bytes."""


def frame(head, tensors=()):
    """A frame as a worker sends it."""
    body = wire.bytes_of_tensors(list(tensors))
    header = json.dumps(head).encode()
    return struct.pack("!II", len(header), len(body)) + header + body


def good_frames():
    """Frames that are as agreed, for a mutation to begin with."""
    for value in (
        None,
        1,
        0.5,
        "text",
        [1, (2.5, None)],
        {"a": torch.ones(2, 3)},
        preset("tiny"),
        torch.ones(2).bool(),
    ):
        tensors = []
        yield frame({"id": "0123456789abcdef", "answer": wire.encode(value, tensors)}, tensors)
    described = {name: "x" for name in wire.ERROR_FIELDS} | {"type": "StudentError"}
    yield frame({"id": "0123456789abcdef", "error": described})


SOURCES = (
    b"import torch\nfrom torch import nn as n\n\n\nclass RMSNorm(n.Module):\n    x = n.functional.rms_norm\n",
    b"#!/usr/bin/python\n# -*- coding: cp1252 -*-\nx = '\xe9'\n",
    "x = 1\n".encode("utf-16"),
)


def read_frame(data):
    """What the trusted side does with what a worker says."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.settimeout(5)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
        ours.setblocking(False)
        try:
            ours.send(data)
        except BlockingIOError:
            return
        ours.shutdown(socket.SHUT_WR)
        try:
            head, tensors = wire.receive(theirs, wire.within(5))
            if isinstance(head, dict):
                value = wire.decode(head.get("answer"), tensors)
                clean(value)
                error_of(head.get("error"))
        except (wire.WireError, wire.WireClosed):
            pass


def read_source(data):
    """What is done with a file, on either side."""
    try:
        text = text_of(data[: FILE_LIMIT + 1], "it")
    except SourceError:
        return
    taken_from_torch(text, {"rms_norm"})
    imported(text)
    try:
        tree_of(text, "it")
    except SourceError:
        pass


TARGETS = {"frame": (read_frame, tuple(good_frames())), "source": (read_source, SOURCES)}


def mutated(rng, data):
    """The bytes with some cut, doubled, changed, or replaced by words that matter."""
    data = bytearray(data)
    for _ in range(rng.randint(1, 6)):
        at, length = rng.randint(0, len(data)), rng.choice((0, 1, 2, 8, 60))
        match rng.randint(0, 4):
            case 0:
                data[at : at + length] = rng.choice(WORDS)
            case 1:
                data[at : at + 1] = rng.randbytes(1)
            case 2:
                del data[at : at + length]
            case 3:
                data[at:at] = data[at : at + 60] * rng.choice((1, 2, 40))
            case _:
                data[at : at + 4] = struct.pack("!I", rng.choice((0, 1, 255, 1 << 16, 1 << 31, (1 << 32) - 1)))
    return bytes(data[: 1 << 20])


def attempt(name, seed):
    """One try of one target; Fault where it does what it must not."""
    target, seeds = TARGETS[name]
    rng = random.Random(seed)
    data = mutated(rng, rng.choice(seeds))
    if name == "frame" and rng.random() < 0.7:  # lengths that agree, or hardly anything comes past them
        body = max(0, len(data) - 8 - data.find(b"}}") - 2) if b"}}" in data else 0
        data = struct.pack("!II", max(0, len(data) - 8 - body), body) + data[8:]
    begin = time.thread_time()
    try:
        target(data)
    except Exception as error:
        raise Fault(f"{name}, seed {seed}: {type(error).__name__}: {error}, for {data[:200]!r}") from error
    if time.thread_time() - begin > SECONDS_EACH:
        raise Fault(f"{name}, seed {seed}: it takes {time.thread_time() - begin:.1f} s, for {data[:200]!r}")


def add_arguments(parser):
    parser.add_argument("--seconds", type=float, default=600, help="how long")
    parser.add_argument("--seed", type=int, default=0, help="of the first try")


def run(args):
    """Try until the time is over; 1 at the first fault."""
    end, seed = time.monotonic() + args.seconds, args.seed
    try:
        while time.monotonic() < end:
            for name in TARGETS:
                attempt(name, seed)
            seed += 1
    except Fault as fault:
        print(fault)
        return 1
    print(f"{(seed - args.seed) * len(TARGETS):,} tries of {', '.join(TARGETS)}: no fault")
    return 0
