"""Sixty right programs: the answer key laid out, imported, encoded and written as students do it.

Each is {path: bytes} of a submission. None may lose a point, at home or in the grade.
"""

import re

from grading.paths import REFERENCE

TEXTS = {path.stem: path.read_text(encoding="utf-8") for path in REFERENCE.glob("*.py") if path.stem != "__init__"}
SIBLING = re.compile(r"^from \.(\w+) import (.+)$", re.MULTILINE)
FIRST = "import torch\n"  # of each file that has imports


def program(place="", change=lambda texts: texts, beside=None, encoding="utf-8"):
    """The week's files in the folder `place`, changed, with other files beside them."""
    texts = change(dict(TEXTS)) | (beside or {})
    prefix = f"{place}/" if place else ""
    files = {name if "." in name else f"{name}.py": text for name, text in texts.items()}
    return {prefix + name: _bytes(text, encoding) for name, text in files.items()}


def _bytes(text, encoding):
    return text if isinstance(text, bytes) else text.encode(encoding)


def imports(how):
    """Every import of a sibling written in another way; `how` has {file} and {names}."""
    def change(texts):
        return {file: SIBLING.sub(lambda m: how.format(file=m[1], names=m[2]), text) for file, text in texts.items()}
    return change


def by_module(how):
    """Every sibling imported as a module, and its names taken from it."""
    def lines(found):
        file, names = found.groups()
        return "\n".join([how.format(file=file), *(f"{name} = {file}.{name}" for name in names.split(", "))])
    return lambda texts: {file: SIBLING.sub(lines, text) for file, text in texts.items()}


def also(**more):
    """Lines put before the imports of these files."""
    return lambda texts: texts | {file: texts[file].replace(FIRST, lines + FIRST, 1) for file, lines in more.items()}


def after(**more):
    """Lines put at the end of these files."""
    return lambda texts: texts | {file: texts[file] + lines for file, lines in more.items()}


def declared(encoding, letters, comment="# -*- coding: {} -*-\n"):
    """A comment that declares an encoding, and letters that need it."""
    head = comment.format(encoding)
    return lambda texts: {file: f"{head}# {letters}\n{text}" for file, text in texts.items()}


def ends(with_):
    return lambda texts: {file: text.replace("\n", with_) for file, text in texts.items()}


TURN = """import torch


def turn(x, cos, sin):
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2).to(x.dtype)
"""


def turned(import_line):
    """rope.py whose apply_rope asks a helper."""
    return after(rope=f"\n\n{import_line}\n\n\ndef apply_rope(x, cos, sin):\n    return turn(x, cos, sin)\n")


def moved(texts):
    """All of RMSNorm and SwiGLU in a helper; modules.py only hands them on."""
    return texts | {"layers": texts["modules"], "modules": "from .layers import *\nfrom .layers import RMSNorm\n"}


INSIDE = SIBLING.sub("", TEXTS["model"]).replace(
    "        super().__init__()",
    "        from .attention import GroupedQueryAttention\n        from .modules import RMSNorm, SwiGLU\n\n"
    "        super().__init__()", 1,
)  # fmt: skip
TRIED = "try:\n    from .{file} import {names}\nexcept ImportError:\n    from {file} import {names}"
TRIED_BACK = "try:\n    from {file} import {names}\nexcept ImportError:\n    from .{file} import {names}"
NEGATIVE = """


def apply_rope(x, cos, sin):
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    pairs = torch.view_as_complex(wide.unflatten(-1, (-1, 2)).contiguous())
    back = (pairs * torch.complex(cos.to(wide.dtype), sin.to(wide.dtype))).conj()
    return torch.stack((back.real, -back.imag), dim=-1).flatten(-2).to(x.dtype)
"""
RAN = 'if __name__ == "__main__":\n    raise SystemExit("only when it is run by itself")\n'
NUMPY = "\n\ndef _as_list(values):\n    return numpy.asarray(values).tolist()\n"

PROGRAMS = {
    # layouts
    "at the top": program(),
    "in exercises_en": program("exercises_en"),
    "in a folder of another name": program("my_solution"),
    "in a folder that is no name": program("my work (2)"),
    "in a folder of other letters": program("Übung"),
    "two folders deep": program("week06/exercises_en"),
    "three folders deep": program("home/week06/exercises_en"),
    "with notes and notebooks": program(beside={"notes.txt": "x", "week06.ipynb": "{", "data.csv": "1,2"}),
    "with what Python leaves behind": program(beside={"__pycache__/rope.cpython-311.py": "x = ("}),
    "with a test of one's own": program(beside={"test_mine.py": "import nothing_of_this_name\n"}),
    "with a folder of drafts": program(beside={"drafts/old.py": "def half(:\n"}),
    "with a helper that is not sound": program(beside={"broken.py": b"\xff\xfe\xfd"}),
    # imports
    "by the file's name": program("exercises_en", imports("from {file} import {names}")),
    "by exercises_en": program("exercises_en", imports("from exercises_en.{file} import {names}")),
    "by exercises_en, from another folder": program("mine", imports("from exercises_en.{file} import {names}")),
    "by the folder's own name": program("mine", imports("from mine.{file} import {names}")),
    "by the folder's own name, at the top": program("", imports("from mine.{file} import {names}")),
    "by both folders' names": program("week06/exercises_en", imports("from week06.exercises_en.{file} import {names}")),
    "as a module, from the package": program(change=by_module("from . import {file}")),
    "as a module, by its name": program(change=by_module("import {file}")),
    "as a module, by exercises_en": program(change=by_module("from exercises_en import {file}")),
    "as another name": program(change=by_module("import exercises_en.{file} as {file}")),
    "as a dotted name": program("mine", by_module("import mine.{file}\n{file} = mine.{file}")),
    "everything": program(change=imports("from .{file} import *")),
    "everything by its name": program(change=imports("from {file} import *")),
    "relative, else absolute": program(change=imports(TRIED)),
    "absolute, else relative": program(change=imports(TRIED_BACK)),
    "by importlib": program(
        change=by_module('import importlib\n{file} = importlib.import_module(".{file}", __package__)')
    ),
    "by __import__": program(change=by_module('{file} = __import__("{file}")')),
    "with the path extended": program(
        change=imports("import os, sys\nsys.path.insert(0, os.path.dirname(__file__))\nfrom {file} import {names}")
    ),
    "inside a function": program(change=lambda texts: texts | {"model": INSIDE}),
    "in a ring": program(change=after(modules="\n\nfrom . import attention as _later\n")),
    "for types only": program(
        change=also(rope="from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from .nowhere import Nothing\n")
    ),
    # helpers
    "a helper": program(change=turned("from .helpers import turn"), beside={"helpers": TURN}),
    "a helper by its name": program(change=turned("from helpers import turn"), beside={"helpers": TURN}),
    "a helper by exercises_en": program(
        "exercises_en", turned("from exercises_en.helpers import turn"), {"helpers": TURN}
    ),
    "a helper in a package": program(
        change=turned("from .tools import turn"),
        beside={"tools/__init__.py": "from .turns import turn\n", "tools/turns.py": TURN},
    ),
    "a helper in a folder": program(change=turned("from .tools.turns import turn"), beside={"tools/turns.py": TURN}),
    "a helper two folders below": program(
        change=turned("from tools.deep.turns import turn"), beside={"tools/deep/turns.py": TURN}
    ),
    "a helper in __init__.py": program(change=turned("from . import turn"), beside={"__init__.py": TURN}),
    "a helper of a helper": program(
        change=turned("from .first import turn"), beside={"first": "from second import turn\n", "second": TURN}
    ),
    "a helper that asks back": program(
        change=turned("from .helpers import turn"),
        beside={"helpers": TURN + "\n\ndef table():\n    from .rope import rope_cos_sin\n    return rope_cos_sin\n"},
    ),
    "a helper named as one of Python's": program(change=turned("from .random import turn"), beside={"random": TURN}),
    "a helper named as one of the tests'": program(change=turned("from draw import turn"), beside={"draw": TURN}),
    "a helper named as a package of ours": program(
        change=turned("from grading import turn"), beside={"grading": TURN}
    ),
    "the layers in a helper": program(change=moved),
    "thirty files": program(
        change=turned("from .part23 import turn"),
        beside={f"part{n:02}": TURN if n == 23 else "x = 1\n" for n in range(24)},
    ),
    "a helper in another encoding": program(
        change=turned("from .helpers import turn"),
        beside={"helpers": f"# coding: cp1252\n# \xe9\n{TURN}".encode("cp1252")},
    ),
    # encodings
    "a byte order mark": program(encoding="utf-8-sig"),
    "UTF-16": program(encoding="utf-16"),
    "Latin-1, declared": program(change=declared("latin-1", "\xe9\xdf"), encoding="latin-1"),
    "Cyrillic, declared": program(change=declared("koi8-r", "\u0436"), encoding="koi8-r"),
    "Chinese, declared": program(change=declared("gbk", "\u4e2d"), encoding="gbk"),
    "Japanese, as vim declares it": program(
        change=declared("shift_jis", "\u4e2d", "# vim: set fileencoding={} :\n"), encoding="shift_jis"
    ),
    "declared behind a shebang": program(
        change=declared("iso-8859-15", "\u20ac", "#!/usr/bin/env python3\n# coding={}\n"), encoding="iso-8859-15"
    ),
    "UTF-8, as Emacs declares it": program(change=declared("utf-8-unix", "\u20ac")),
    "Windows' line ends": program(change=ends("\r\n")),
    "an old Mac's line ends": program(change=ends("\r")),
    # styles
    "with types as text": program(
        change=lambda texts: {file: text.replace(FIRST, f"from __future__ import annotations\n\n{FIRST}", 1)
                              for file, text in texts.items()}
    ),
    "compiled": program(change=after(modules="\n\nSwiGLU.forward = torch.compile(SwiGLU.forward)\n")),
    "a negative by a mark only": program(change=after(rope=NEGATIVE)),
    "that can be run": program(change=after(modules=f"\n\n{RAN}", rope=f"\n\n{RAN}")),
    "with numpy": program(change=lambda texts: also(rope="import numpy\n")(after(rope=NUMPY)(texts))),
    "that logs and warns": program(
        change=also(modules="import logging\nimport warnings\n\nlogging.warning('loaded')\nwarnings.warn('loaded')\n")
    ),
}  # fmt: skip
