"""What a file of the bundle says, whatever it is: text by text, with the place of each.

Notebooks cell by cell, stored tensors (names, metadata, and numbers that are letters), archives, encoded
text: each is opened and its inside read in the same way. What can't be read is a Problem, so that nothing
goes out unseen.
"""

import base64
import binascii
import bz2
import gzip
import io
import json
import lzma
import re
import tarfile
import tomllib
import zipfile
import zlib
from dataclasses import dataclass
from importlib.util import MAGIC_NUMBER
from pathlib import PurePosixPath

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_safetensors

DEEPEST = 5
TEXT_KINDS = {".py", ".md", ".txt", ".toml", ".json", ".ipynb", ""}
ENCODED = re.compile(r"[A-Za-z0-9+/_-]{40,}={0,2}")
UNPACKED = {
    b"\x1f\x8b": gzip.decompress,
    b"BZh": bz2.decompress,
    b"\xfd7zXZ": lzma.decompress,
    b"\x78": zlib.decompress,
}
LETTERS = {9, 10, 13, *range(32, 127)}


@dataclass(frozen=True)
class Text:
    """A text that somebody can read: where it stands, and the line there that its first one is."""

    where: str
    text: str
    line: int = 1


@dataclass(frozen=True)
class Problem:
    """A place that must not be in a bundle, or that can't be read."""

    where: str
    what: str


def read(name, data, depth=0):
    """Every Text and Problem in the file `name` with the bytes `data`."""
    yield Text(f"the name of {name}", name)
    if depth > DEEPEST:
        yield Problem(name, "archives in archives, too deep to read")
    elif zipfile.is_zipfile(io.BytesIO(data)):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            yield Text(f"the comment of {name}", archive.comment.decode("latin-1"))
            for member in archive.infolist():
                yield from read(f"{name}/{member.filename}", archive.read(member), depth + 1)
    elif _is_tar(data):
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            for member in archive.getmembers():
                inside = archive.extractfile(member) if member.isfile() else None
                yield from read(f"{name}/{member.name}", inside.read() if inside else b"", depth + 1)
    elif PurePosixPath(name).suffix == ".safetensors":
        yield from _tensors(name, data, depth)
    elif (unpacked := _unpacked(data)) is not None:
        yield from _blob(f"{name}, unpacked", unpacked, depth + 1)
    else:
        yield from _plain(name, data, depth)


def _plain(name, data, depth):
    kind = PurePosixPath(name).suffix
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = None
    if kind not in TEXT_KINDS or text is None or "\0" in text:
        what = "compiled Python" if data[:2] == MAGIC_NUMBER[:2] else f"a file of kind {kind or 'binary'}"
        yield Problem(name, f"{what}, which a student needs not and nobody can read")
        yield from _blob(name, data, depth)
    elif kind == ".ipynb":
        yield from _notebook(name, text, depth)
    else:
        yield from _text(name, text, depth)
        if kind in (".json", ".toml"):
            yield from _strings(name, text, json.loads if kind == ".json" else tomllib.loads, depth)


def _text(where, text, depth, line=1):
    """A text, and what is encoded in it."""
    yield Text(where, text, line)
    for found in ENCODED.finditer(text):
        for data in _decoded(found[0]):
            at = line + text.count("\n", 0, found.start())
            yield from _blob(f"{where}, line {at}, encoded", data, depth + 1)


def _decoded(word):
    for decode in (bytes.fromhex, _base64, _base64_for_addresses):
        try:
            yield decode(word)
        except (ValueError, binascii.Error):
            continue


def _base64(word, marks=b"+/"):
    return base64.b64decode(word.rstrip("=") + "==", altchars=marks)


def _base64_for_addresses(word):
    return _base64(word, b"-_")


def _blob(where, data, depth):
    """Bytes out of a larger place: an archive, packed data or letters, else their readable stretches."""
    unpacked = _unpacked(data)
    if zipfile.is_zipfile(io.BytesIO(data)) or _is_tar(data):
        yield from read(where, data, depth)
    elif unpacked is not None and depth <= DEEPEST:
        yield from _blob(f"{where}, unpacked", unpacked, depth + 1)
    else:
        for encoding in ("utf-8", "utf-16"):
            try:
                text = data.decode(encoding)
            except UnicodeDecodeError:
                continue
            if sum(ord(letter) in LETTERS for letter in text) > 0.9 * len(text):
                yield from _text(where, text, depth) if depth <= DEEPEST else [Text(where, text)]
                return
        stretches = re.findall(rb"[\t\n\r -~]{12,}", data)
        yield Text(where, b"\n".join(stretches).decode("ascii"))


def _unpacked(data):
    for magic, unpack in UNPACKED.items():
        if data.startswith(magic):
            try:
                return unpack(data)
            except (OSError, EOFError, zlib.error, lzma.LZMAError):
                return None
    return None


def _is_tar(data):
    return len(data) > 262 and data[257:262] == b"ustar" or data[:2] == b"\x1f\x8b" and _is_tar(_unpacked(data) or b"")


def _notebook(name, text, depth):
    try:
        notebook = json.loads(text)
        cells = notebook["cells"]
    except (ValueError, KeyError, TypeError):
        yield Problem(name, "not a notebook")
        yield from _text(name, text, depth)
        return
    for number, cell in enumerate(cells, 1):
        where = f"{name}, cell {number}"
        yield from _text(where, _joined(cell.get("source", "")), depth)
        if cell.get("outputs"):
            yield Problem(where, "an output, and notebooks go out without")
        rest = {key: value for key, value in cell.items() if key != "source"}
        for value in _values(rest):
            yield from _text(f"{where}, beside its source", value, depth)
    for value in _values({key: value for key, value in notebook.items() if key != "cells"}):
        yield from _text(f"{name}, metadata", value, depth)


def _joined(source):
    return source if isinstance(source, str) else "".join(source)


def _values(value):
    """Every text in a value as JSON and TOML have them; a list of lines is one text."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield str(key)
            yield from _values(inner)
    elif isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        yield "".join(value) if any(item.endswith("\n") for item in value) else "\n".join(value)
    elif isinstance(value, list):
        for inner in value:
            yield from _values(inner)


def _strings(name, text, load, depth):
    """Texts that a file holds in another spelling than its own lines show, e.g. with \\n for a new line."""
    try:
        values = list(_values(load(text)))
    except ValueError as error:
        yield Problem(name, f"it can't be read: {error}")
        return
    for value in values:
        if value not in text:
            line = text.count("\n", 0, max(text.find(json.dumps(value)[:20]), 0)) + 1
            yield from _text(name, value, depth, line)


def _tensors(name, data, depth):
    try:
        tensors = load_safetensors(data)
    except (SafetensorError, ValueError) as error:
        yield Problem(name, f"not a file of safetensors: {error}")
        yield from _blob(name, data, depth)
        return
    size = int.from_bytes(data[:8], "little")
    for key, value in json.loads(data[8 : 8 + size]).get("__metadata__", {}).items():
        yield from _text(f"{name}, metadata {key}", f"{key}\n{value}", depth)
    yield Text(f"{name}, names of tensors", "\n".join(tensors))
    for key, tensor in tensors.items():
        letters = _letters_of(tensor)
        if letters is not None:
            yield from _blob(f"{name}, tensor {key}", letters, depth)


def _letters_of(tensor):
    """A tensor's numbers as bytes where they can be letters, else None; its raw bytes where these are."""
    flat = tensor.flatten()
    raw = flat.view(torch.uint8) if flat.numel() else flat
    for numbers in (raw, flat.double() if not flat.is_complex() else raw):
        if numbers.numel() >= 8 and bool(((numbers >= 0) & (numbers < 256) & (numbers == numbers.round())).all()):
            data = bytes(numbers.to(torch.uint8).tolist())
            packed = _unpacked(data) is not None or zipfile.is_zipfile(io.BytesIO(data))
            if packed or sum(byte in LETTERS for byte in data) > 0.9 * len(data):
                return data
    return None
