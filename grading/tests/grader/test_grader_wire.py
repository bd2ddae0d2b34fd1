"""The wire between the zones: what is sent comes back, and nothing else is taken for it."""

import json
import math
import socket
import struct

import numpy
import pytest
import torch

from grading.grader.inside import wire
from grading.grader.inside.text import TEXT_LIMIT
from nanolm.answers import REAL, Foreign, plain
from nanolm.config import preset


@pytest.fixture
def line():
    """Two ends of a wire."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def across(line, value):
    """A value after its way over the wire."""
    ours, theirs = line
    tensors = []
    wire.send(ours, {"value": wire.encode(value, tensors)}, tensors)
    head, found = wire.receive(theirs, wire.within(5))
    return wire.decode(head["value"], found)


@pytest.mark.parametrize(
    "value",
    [None, True, 0, -7, 2**70, 0.1, -0.0, math.inf, "text", [1, [2.5, None]], (3, "a"), {"a": 1, "b": (2,)}],
    ids=repr,
)
def test_plain_values_come_back(line, value):
    got = across(line, value)
    assert type(got) is type(value) and got == value and repr(got) == repr(value)


@pytest.mark.parametrize("dtype", REAL.values(), ids=str)
def test_tensors_come_back_to_the_last_bit(line, dtype):
    sent = (torch.randn(3, 4) * 5).to(dtype).t()
    got = across(line, sent)
    assert got.dtype == dtype and torch.equal(got, sent)


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1, 1, 1, 1)], ids=str)
def test_odd_shapes_come_back(line, shape):
    assert across(line, torch.zeros(shape)).shape == shape


def test_nan_infinity_and_meta_come_back(line):
    odd = torch.tensor([math.nan, math.inf, -math.inf, -0.0])
    assert torch.equal(across(line, odd).view(torch.int32), odd.view(torch.int32))
    minus = torch.complex(torch.zeros(3), torch.ones(3)).conj().imag  # a view that is negative by a mark only
    assert across(line, minus).tolist() == [-1.0] * 3
    ghost = across(line, torch.empty(2, 3, dtype=torch.bfloat16, device="meta"))
    assert (ghost.device.type, ghost.dtype, tuple(ghost.shape)) == ("meta", torch.bfloat16, (2, 3))


def test_a_configuration_comes_back(line):
    for name in ("tiny", "gemma2-2b", "gpt2-small"):
        assert across(line, preset(name)) == preset(name)


def test_numbers_of_numpy_keep_their_types_name(line):
    for value in (numpy.int64(5), numpy.float32(0.5), numpy.float64(2.0)):
        got = across(line, value)
        assert got == value and type(got).__name__ == type(value).__name__ and type(got) not in (int, float)


def test_an_object_leaves_only_its_name(line):
    class Strange:
        def __eq__(self, other):
            return True

    got = across(line, Strange())
    assert type(got).__name__ == "Strange" and got != 1 and isinstance(got, Foreign)


ODD = {
    "complex64 tensor": torch.ones(2, dtype=torch.complex64),
    "float8_e4m3fn tensor": torch.ones(2).to(torch.float8_e4m3fn),
    "uint16 tensor": torch.ones(2, dtype=torch.uint16),
    "quint8 tensor": torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8),
    "sparse_coo tensor": torch.ones(2).to_sparse(),
    "sparse_csr tensor": torch.ones(2, 2).to_sparse_csr(),
    "mkldnn tensor": torch.ones(2).to_mkldnn(),
    "nested tensor": torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged),
}


@pytest.mark.parametrize("name", ODD)
def test_a_tensor_of_no_plain_real_numbers_leaves_only_its_kind(line, name):
    for got in (across(line, ODD[name]), plain(ODD[name])):
        assert isinstance(got, Foreign) and type(got).__name__ == name


def test_text_is_cut_and_printable():
    assert wire.clean("\x1b[2J\n\u202e<b>é") == "\\x1b[2J\\n\\u202e<b>\\xe9"
    assert len(wire.clean("x" * 10_000)) < TEXT_LIMIT + 10


def raw(header=b"{}", body=b"", lengths=None):
    return struct.pack("!II", *(lengths or (len(header), len(body)))) + header + body


def safetensors(**fields):
    head = json.dumps({"0": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8], **fields}}).encode()
    return struct.pack("<Q", len(head)) + head + bytes(8)


BAD_FRAMES = {
    "too long a header": raw(lengths=(wire.HEADER_LIMIT + 1, 0)),
    "too long a body": raw(lengths=(2, wire.BODY_LIMIT + 1)),
    "no JSON": raw(b"{"),
    "not ASCII": raw('"é"'.encode()),
    "deep": raw(b"[" * 100_000),
    "NaN": raw(b"NaN"),
    "Infinity": raw(b"[-Infinity]"),
    "a field twice": raw(b'{"a": 1, "a": 2}'),
    "a number of many digits": raw(b"1" * 10_000),
    "pickle": raw(b"{}", b"\x80\x04K\x01."),
    "cut safetensors": raw(b"{}", safetensors()[:-4]),
    "another shape": raw(b"{}", safetensors(shape=[3])),
    "offsets beyond": raw(b"{}", safetensors(data_offsets=[0, 800])),
    "an unknown dtype": raw(b"{}", safetensors(dtype="F8_E4M3", shape=[8])),
    "a huge empty axis": raw(b"{}", safetensors(shape=[0, 1 << 40], data_offsets=[0, 0])[:-8]),
    "not numbered": raw(b"{}", safetensors().replace(b'"0"', b'"1"')),
}


@pytest.mark.parametrize("name", BAD_FRAMES)
def test_a_bad_frame_is_a_wire_error(line, name):
    ours, theirs = line
    ours.sendall(BAD_FRAMES[name])
    with pytest.raises(wire.WireError):
        wire.receive(theirs, wire.within(5))


def test_a_long_frame_is_refused_before_it_is_read(line):
    ours, theirs = line
    ours.sendall(raw(lengths=(10, 2**32 - 1)))  # nothing follows: reading on would end in a timeout
    with pytest.raises(wire.WireError, match="too many"):
        wire.receive(theirs, wire.within(0.5))


BAD_VALUES = [
    [],
    {},
    3,
    "text",
    {"text": 3},
    {"_value": None},
    {"value": None},
    {"text": "a", "more": 1},
    {"whole": "1e5", "type": "int"},
    {"whole": "9" * 100, "type": "int"},
    {"real": "one", "type": "float"},
    {"real": "0x1p99999", "type": "float"},
    {"list": {}},
    {"dict": [["a"]]},
    {"dict": [[1, None]]},
    {"tensor": 0},
    {"tensor": -1},
    {"tensor": True},
    {"meta": [1 << 30, 1 << 30], "dtype": "float32"},
    {"meta": [-1], "dtype": "float32"},
    {"meta": [1] * 20, "dtype": "float32"},
    {"meta": [1], "dtype": "object"},
    {"complex": {"tensor": 0}},
    {"config": {}},
    {"config": {"L": None}},
    {"list": [None] * 5_000},
]


@pytest.mark.parametrize("value", BAD_VALUES, ids=lambda value: repr(value)[:40])
def test_a_bad_value_is_a_wire_error(value):
    with pytest.raises(wire.WireError):
        wire.decode(value, [])


def test_a_nested_value_is_a_wire_error():
    value = None
    for _ in range(30):
        value = {"list": [value]}
    with pytest.raises(wire.WireError, match="deeply"):
        wire.decode(value, [])


def test_silence_ends_at_the_deadline(line):
    with pytest.raises(wire.WireTimeout):
        wire.receive(line[1], wire.within(0.2))


def test_a_slow_sender_ends_at_the_deadline_too(line):
    ours, theirs = line
    ours.sendall(raw(b'{"a": 1}')[:9])
    with pytest.raises(wire.WireTimeout):
        wire.receive(theirs, wire.within(0.2))


def test_a_reader_that_does_not_read_ends_at_the_deadline(line):
    with pytest.raises(wire.WireTimeout):
        wire.send(line[0], {}, [torch.zeros(1_900_000)], wire.within(0.2))


def test_a_closed_wire_is_said(line):
    ours, theirs = line
    ours.close()
    with pytest.raises(wire.WireClosed):
        wire.receive(theirs, wire.within(1))


def test_what_is_too_large_is_not_sent(line):
    with pytest.raises(wire.WireError, match="too large"):
        wire.send(line[0], {}, [torch.zeros(wire.BODY_LIMIT // 4 + 1)])
