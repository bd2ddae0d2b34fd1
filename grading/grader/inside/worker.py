"""The process of student code: it runs what it is asked on the submission's files and sends data back.

It asks the same `nanolm.asking.subject` that the tests ask in process, so an answer means the same on both
sides. Nothing that this process says is believed: student code can change all of it.
"""

import os
from dataclasses import fields
from pathlib import Path

import torch

from nanolm.asking.subject import Outcome, Subject, seed_student_code
from nanolm.errors import GUARDED_ERRORS, NotStarted, StudentError
from nanolm.impl import Implementation, ImplementationError

from . import wire
from .discard_output import LIMIT, replace_streams

ERRORS = (*GUARDED_ERRORS, ImplementationError)
METHODS = (
    *("run", "step", "counted", "load", "state", "shapes"),
    *("bfloat16", "double", "half", "to_meta"),
)


def serve(sock, room):
    """Answer requests until the other side closes. `room` is a folder of this process alone."""
    sock.setblocking(True)
    head, texts = wire.receive(sock)
    folder = room.joinpath("submission", *head["place"])
    for (name, length), text in zip(head["files"], texts, strict=True):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.numpy().tobytes()[:length])
    folder.mkdir(parents=True, exist_ok=True)
    elsewhere = room / "elsewhere"
    elsewhere.mkdir()
    os.chdir(elsewhere)
    said = replace_streams()
    answerer = Answerer(Subject(Implementation("submission", folder)))
    wire.send(sock, {"answer": None}, [])  # in place, and still without student code
    while True:
        try:
            head, tensors = wire.receive(sock)
        except wire.WireClosed:
            return
        _answer(sock, answerer, head, tensors, folder, said)


def _answer(sock, answerer, head, tensors, folder, said):
    found = []
    try:
        answer = {"id": head["id"], "answer": wire.encode(answerer.do(head, tensors), found)}
        wire.send(sock, answer | _flood(said), found)
    except BaseException as error:  # also KeyboardInterrupt, and whatever else student code may raise
        wire.send(sock, {"id": head["id"], "error": _described(error, folder)} | _flood(said), [])


def _flood(said):
    return {"flood": True} if said.bytes > LIMIT else {}


def _described(error, folder):
    try:
        return describe(error, folder)
    except BaseException:  # an exception that can't even be printed
        return describe(StudentError("Exception", "it can't be shown"), folder)


def describe(error, folder):
    """An exception as plain data, without the folder that the files happen to lie in."""
    if not isinstance(error, ERRORS):
        error = StudentError(type(error).__name__, str(error))

    def said(text):
        return wire.clean(str(text).replace(f"{folder}{os.sep}", ""))

    kind = next(kind for kind in ERRORS if isinstance(error, kind))
    described = dict.fromkeys(wire.ERROR_FIELDS, "") | {"type": kind.__name__, "message": said(error)}
    if kind is NotStarted:
        described["name"] = said(error.name)
    elif kind is StudentError:
        described |= {field: said(getattr(error, field)) for field in wire.RAISED_FIELDS}
    return described


class Answerer:
    """The parts that were built, by the numbers that the other side gave them."""

    def __init__(self, subject):
        self.subject = subject
        self.parts = {}

    def do(self, head, tensors):
        """Run one request; the result is data."""
        for order in head.get("first", ()):
            self.do(order, tensors)
        if head.get("begin"):  # a test begins, as tests/conftest.py has it in process
            seed_student_code()
            self.subject.changed.clear()
        args = wire.decode(head["args"], tensors)
        kwargs = wire.decode(head["kwargs"], tensors)
        match head["do"]:
            case "function":
                return plain(getattr(self.subject, head["name"]).run(*args, **kwargs), args)
            case "changed":
                return self.subject.changed_settings(head["name"])
            case "build":
                self.parts[head["as"]] = getattr(self.subject, head["name"])(*args, **kwargs)
            case "copy":
                self.parts[head["as"]] = self.parts[head["part"]].copy()
            case "taken":
                return self.subject.taken_from_torch(head["name"], *args)
            case "cache":
                self.parts[head["as"]] = self.parts[head["part"]].open_cache(*args)
            case "feed":
                cache = None if head["cache"] is None else self.parts[head["cache"]]
                return plain(self.parts[head["part"]].feed(cache, *args, **kwargs), ())
            case "method" if head["name"] in METHODS:
                return plain(getattr(self.parts[head["part"]], head["name"])(*args, **kwargs), args)
            case _:
                raise ValueError("unknown request")
        return None


def plain(result, args):
    """An Outcome as a dict; a Part, which a method hands on, as nothing; data as it is.

    An input that is still what was given goes back as None: the other side has it.
    """
    if isinstance(result, Outcome):
        inputs = [None if _unchanged(*pair) else pair[1] for pair in zip(args, result.inputs, strict=False)]
        return {field.name: getattr(result, field.name) for field in fields(result)} | {"inputs": inputs}
    return result if isinstance(result, (dict, list, tuple)) else None


def _unchanged(given, now):
    if not isinstance(given, torch.Tensor) or not isinstance(now, torch.Tensor):
        return repr(given) == repr(now)
    alike = (given.dtype, given.shape, given.device) == (now.dtype, now.shape, now.device)
    return alike and (given.is_meta or torch.equal(given, now))


def room_of(path):
    """The worker's own folder, made where it is missing."""
    room = Path(path)
    room.mkdir(parents=True, exist_ok=True)
    return room
