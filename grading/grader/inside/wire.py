"""Frames between the zones: two lengths, a JSON header, safetensors bytes. Never a pickle.

Values travel as JSON; a tensor is a number in it that points into the bytes. The reader trusts
nothing: lengths are checked before anything is read, the header is strict JSON of limited depth,
every value has one of the few forms below, and whatever else comes is a WireError.
"""

import json
import numbers
import re
import socket
import struct
import time

import torch
from safetensors import TensorSpec, serialize
from safetensors.torch import load as tensors_of_bytes

from nanolm.answers import REAL, Foreign, foreign, odd_kind
from nanolm.config import ModelConfig

from .text import clean

LENGTHS = struct.Struct("!II")
PIECE = 1 << 20  # bytes that are read or written at once
HEADER_LIMIT = 1 << 20
BODY_LIMIT = 8 << 20
DEPTH_LIMIT = 16
ITEMS_LIMIT = 4_096  # values in one frame
RANK_LIMIT = 16
AXIS_LIMIT = 1 << 17  # of which a tensor without entries may be long, and cut into as many
WHOLE_LIMIT = 1 << 256
ROW = 1 << 10

RAISED_FIELDS = ("kind", "message", "place", "line", "tensors", "axis")  # of a StudentError
ERROR_FIELDS = ("type", "name", *RAISED_FIELDS)
UNASKED = "nobody has asked for it"  # early or late: which of the two is a matter of chance


class WireError(Exception):
    """A frame that is not as agreed; the message says what is wrong with it."""


class WireClosed(Exception):
    """The other side has gone."""


class WireTimeout(Exception):
    """The other side did not answer in time."""


def within(seconds):
    """A deadline: a function that says how many seconds are left."""
    end = time.monotonic() + seconds
    return lambda: end - time.monotonic()


def send(sock, head, tensors, left=None):
    """Send one frame: a header of plain JSON and the tensors that it points to. `left` is a deadline, see within."""
    header = json.dumps(head).encode("ascii")
    body = bytes_of_tensors(tensors)
    if len(header) > HEADER_LIMIT or len(body) > BODY_LIMIT:
        raise WireError(f"a frame of {len(header) + len(body):,} bytes is too large")
    view = memoryview(LENGTHS.pack(len(header), len(body)) + header + body)
    while view:
        view = view[_in_time(sock, left, sock.send, view[:PIECE]) :]


def receive(sock, left=None):
    """One frame and nothing beyond it: (header, tensors). WireError, WireClosed or WireTimeout where there is none."""
    header_length, body_length = LENGTHS.unpack(_exactly(sock, LENGTHS.size, left))
    if header_length > HEADER_LIMIT or body_length > BODY_LIMIT:
        raise WireError(f"a frame announces {header_length + body_length:,} bytes, which is too many")
    data = _exactly(sock, header_length + body_length, left)
    return _json(data[:header_length]), _tensors(data[header_length:])


def is_silent(sock):
    """Whether nothing is there to be read."""
    sock.settimeout(0)
    try:
        return not sock.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return True


def wait(sock, left):
    """Until something is there to be read."""
    _in_time(sock, left, sock.recv, 1, socket.MSG_PEEK)


def _exactly(sock, count, left):
    pieces = []
    while count:
        piece = _in_time(sock, left, sock.recv, min(count, PIECE))
        if not piece:
            raise WireClosed()
        pieces.append(piece)
        count -= len(piece)
    return b"".join(pieces)


def _in_time(sock, left, call, *args):
    """What one call of the socket gives, before the deadline."""
    while True:
        if left is not None:
            seconds = left()
            if seconds <= 0:
                raise WireTimeout()
            sock.settimeout(seconds)
        try:
            return call(*args)
        except TimeoutError:
            pass  # the deadline may have moved
        except ConnectionError:
            raise WireClosed() from None


def bytes_of_tensors(tensors):
    """Contiguous CPU tensors as safetensors, numbered from 0. (safetensors.torch.save costs ten times as much.)"""
    if not tensors:
        return b""
    return serialize({str(index): _spec(tensor) for index, tensor in enumerate(tensors)})


def tensor_of_bytes(data):
    """Bytes as rows of a tensor, filled up: a text in the header would be six times as long in some languages."""
    filled = bytearray(data) + bytes(ROW - len(data) % ROW)
    return torch.frombuffer(filled, dtype=torch.uint8).view(-1, ROW)


def _spec(tensor):
    dtype = str(tensor.dtype).removeprefix("torch.")
    return TensorSpec(dtype=dtype, shape=tensor.shape, data_ptr=tensor.data_ptr(), data_len=tensor.nbytes)


def _json(data):
    def refuse(word):
        raise WireError(f"the header holds {word}")

    def no_doubles(pairs):
        found = dict(pairs)
        if len(found) != len(pairs):
            raise WireError("the header names a field twice")
        return found

    try:
        return json.loads(data.decode("ascii"), parse_constant=refuse, object_pairs_hook=no_doubles)
    except (ValueError, RecursionError):
        raise WireError("the header is not JSON") from None


def _tensors(data):
    if not data:
        return []
    try:
        found = tensors_of_bytes(data)
    except Exception:  # of safetensors, whatever it raises: the bytes come from outside
        raise WireError("the bytes are not safetensors") from None
    if set(found) != {str(index) for index in range(len(found))} or len(found) > ITEMS_LIMIT:
        raise WireError("the tensors are not numbered from 0")
    tensors = [found[str(index)] for index in range(len(found))]
    for tensor in tensors:
        _check_shape(tensor.shape)
        if tensor.dtype not in REAL.values():
            raise WireError(f"a tensor has the dtype {tensor.dtype}")
    return tensors


def _check_shape(shape):
    if len(shape) > RANK_LIMIT or any(not 0 <= axis <= AXIS_LIMIT for axis in shape):
        raise WireError("a tensor has an impossible shape")


# Values -----------------------------------------------------------------------------------------


def encode(value, tensors):
    """A value as JSON; its tensors are appended to the list. What is not data goes as its type's name."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return {"text": clean(value)}
    if isinstance(value, torch.Tensor):
        return _encode_tensor(value, tensors)
    if isinstance(value, ModelConfig):
        fields = {name: encode(getattr(value, name), tensors) for name in ModelConfig.__dataclass_fields__}
        return {"config": fields}
    if isinstance(value, (list, tuple)):
        kind = "list" if isinstance(value, list) else "tuple"
        return {kind: [encode(item, tensors) for item in value]}
    if isinstance(value, dict) and all(isinstance(name, str) for name in value):
        return {"dict": [[clean(name), encode(item, tensors)] for name, item in value.items()]}
    name = value.name if isinstance(value, Foreign) else type(value).__name__
    return _encode_number(value) or {"object": clean(name)}


def _encode_number(value):
    """int and float, also those of numpy, by their type's name; None for what is no number."""
    name = clean(type(value).__name__)
    if isinstance(value, numbers.Integral) and abs(int(value)) < WHOLE_LIMIT:
        return {"whole": str(int(value)), "type": name}
    if isinstance(value, numbers.Real) and not isinstance(value, numbers.Rational):
        return {"real": float(value).hex(), "type": name}
    return None


def _encode_tensor(value, tensors):
    value = value.detach()
    if kind := odd_kind(value):
        return {"object": kind}
    if value.device.type == "meta":
        return {"meta": list(value.shape), "dtype": str(value.dtype).removeprefix("torch.")}
    value = value.as_subclass(torch.Tensor).cpu().resolve_neg()
    tensors.append(value.clone(memory_format=torch.contiguous_format))
    return {"tensor": len(tensors) - 1}


def decode(value, tensors):
    """The value that some JSON stands for; WireError where it has none of the agreed forms."""
    return _Decoder(tensors).value(value, 0)


class _Decoder:
    def __init__(self, tensors):
        self.tensors = tensors
        self.pointed_to = set()  # by the values: each once, or few bytes would become many
        self.count = 0

    def value(self, value, depth):
        self.count += 1
        if depth > DEPTH_LIMIT or self.count > ITEMS_LIMIT:
            raise WireError("a value is nested too deeply or has too many parts")
        if value is None or isinstance(value, bool):
            return value
        if not isinstance(value, dict) or not value:
            raise WireError("a value has no known form")
        kind, content = next(iter(value.items()))
        form = getattr(self, f"_{kind}", None) if kind in _FORMS else None
        if form is None or set(value) - {kind} != _FORMS[kind]:
            raise WireError("a value has no known form")
        return form(content, value, depth)

    def _text(self, content, value, depth):
        return clean(_require(content, str))

    def _whole(self, content, value, depth):
        if not re.fullmatch(r"-?[0-9]{1,80}", _require(content, str)):
            raise WireError("a whole number is not one")
        return _typed(int, int(content), value["type"])

    def _real(self, content, value, depth):
        try:
            number = float.fromhex(_require(content, str))
        except (ValueError, OverflowError):
            raise WireError("a real number is not one") from None
        return _typed(float, number, value["type"])

    def _list(self, content, value, depth):
        return [self.value(item, depth + 1) for item in _require(content, list)]

    def _tuple(self, content, value, depth):
        return tuple(self._list(content, value, depth))

    def _dict(self, content, value, depth):
        found = {}
        for pair in _require(content, list):
            if not isinstance(pair, list) or len(pair) != 2:
                raise WireError("an entry of a dict is not a pair")
            found[clean(_require(pair[0], str))] = self.value(pair[1], depth + 1)
        return found

    def _config(self, content, value, depth):
        fields = {name: self.value(item, depth + 1) for name, item in _require(content, dict).items()}
        try:
            return ModelConfig(**fields)
        except (TypeError, ValueError, AttributeError):
            raise WireError("a configuration is impossible") from None

    def _object(self, content, value, depth):
        return foreign(_type_name(content))

    def _tensor(self, content, value, depth):
        if type(content) is not int or not 0 <= content < len(self.tensors):
            raise WireError("a value points to a tensor that is not there")
        if content in self.pointed_to:
            raise WireError("two values point to one tensor")
        self.pointed_to.add(content)
        return self.tensors[content].clone()

    def _meta(self, content, value, depth):
        shape = [_require(axis, int) for axis in _require(content, list)]
        _check_shape(shape)
        elements = 1
        for axis in shape:
            elements *= axis
        dtype = REAL.get(value["dtype"]) if isinstance(value["dtype"], str) else None
        if dtype is None or elements > 1 << 40:
            raise WireError("a tensor on the meta device is impossible")
        return torch.empty(shape, dtype=dtype, device="meta")


_FORMS = {  # form -> the fields that come with it
    **dict.fromkeys(("text", "list", "tuple", "dict", "config", "object", "tensor"), set()),
    **dict.fromkeys(("whole", "real"), {"type"}),
    "meta": {"dtype"},
}


def _require(value, kind):
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise WireError(f"a field is not a {kind.__name__}")
    return value


def _typed(kind, number, name):
    """A number of this kind; a numpy number keeps its type's name, so that type(x).__name__ reads the same."""
    name = _type_name(name)
    return number if name == kind.__name__ else type(name, (kind,), {})(number)


def _type_name(name):
    name = clean(_require(name, str))
    return name if re.fullmatch(r"\w[\w ]{0,59}", name, re.ASCII) else "object"
