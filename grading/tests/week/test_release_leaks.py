"""The leak check: today's bundle is clean, and every way to let a solution out is found, with file and line."""

import ast
import base64
import gzip
import io
import json
import marshal
import tarfile
import textwrap
import zipfile
from importlib.util import MAGIC_NUMBER

import pytest
import torch
from safetensors.torch import save

from grading.authoring.marked import Gap, exercises, split
from grading.authoring.stubs import generate
from grading.paths import REFERENCE
from grading.week.release import fragments
from grading.week.release.leaks import NOTEBOOK, WEEK, Guard
from nanolm.impl import CONTRACT

SOURCES = {module: (REFERENCE / f"{module}.py").read_text(encoding="utf-8") for module in CONTRACT}
# Their headers show the formula itself, as it stands in the solution: only a copied line is one.
SHOWN = {"softcap", "kv_cache_bytes_per_token"}
# A helper without a task belongs to the exercise above it.
REGIONS = [
    pytest.param(piece, id=f"{piece.exercise.name}{'' if piece.task else '-helper'}")
    for module, text in SOURCES.items()
    for piece in split(text, module)
    if isinstance(piece, Gap)
]


@pytest.fixture(scope="module")
def guard():
    return Guard()


def region(name):
    """The code of one exercise's solution."""
    texts = [split(text, module) for module, text in SOURCES.items()]
    (found,) = [p for pieces in texts for p in pieces if isinstance(p, Gap) and p.task and p.exercise.name == name]
    return textwrap.dedent("\n".join(found.lines)) + "\n"


class OtherNames(ast.NodeTransformer):
    """Renames every variable; what torch, Python and the contract call something stays."""

    def __init__(self):
        self.names = {}

    def visit_Name(self, node):
        if node.id in fragments.KNOWN | {"torch", "int", "enumerate", "len"}:
            return node
        return ast.Name(self.names.setdefault(node.id, f"other{len(self.names)}"), node.ctx)


def renamed(code):
    return ast.unparse(OtherNames().visit(ast.parse(code))) + "\n"


def in_function(code):
    return f"def mine(x, cos, sin):\n{textwrap.indent(code, '    ')}"


def cell(kind, source, **rest):
    return {"cell_type": kind, "metadata": {}, "source": source.splitlines(keepends=True), **rest}


def notebook(*cells, **metadata):
    full = {"cells": list(cells), "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(full, indent=1).encode()


def zip_of(**files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in files.items():
            archive.writestr(name.replace("_dot_", "."), data)
    return buffer.getvalue()


def tar_of(name, data):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        entry = tarfile.TarInfo(name)
        entry.size = len(data)
        archive.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def letters(text, dtype):
    return torch.tensor(list(text.encode()), dtype=dtype)


def compiled(code):
    return MAGIC_NUMBER + bytes(12) + marshal.dumps(compile(in_function(code), "x.py", "exec"))


ROPE, RMS, GQA = region("apply_rope"), region("RMSNorm.forward"), region("GroupedQueryAttention.forward")
ROPE64 = base64.b64encode(ROPE.encode()).decode()
IMAGE = cell("code", "show()", outputs=[{"output_type": "display_data", "data": {"text/plain": ROPE64}}])
HINT = 'hints = ["""\n' + ROPE + '"""]\n'

# how -> (file, bytes, where it must be said to stand)
PLANTED = {
    "verbatim": ("nanolm/x.py", in_function(ROPE), "nanolm/x.py, line 2"),
    "reindented": ("nanolm/x.py", in_function(in_function(ROPE)), "nanolm/x.py, line 3"),
    "variables renamed": ("tests/x.py", in_function(renamed(ROPE)), "tests/x.py, line 2"),
    "self renamed, in a function": ("tests/x.py", in_function(renamed(RMS)), "tests/x.py, line 2"),
    "imports reordered and added": (
        "nanolm/x.py",
        f"import math\nimport torch\n{renamed(ROPE)}",
        "nanolm/x.py, line 3",
    ),
    "torch under another name": (
        "nanolm/x.py",
        f"import torch as t\n{renamed(ROPE).replace('torch.', 't.')}",
        "nanolm/x.py, line 2",
    ),
    "methods as functions": (
        "nanolm/x.py",
        "s = torch.mean(torch.pow(z, 2), dim=-1, keepdim=True)\n",
        "nanolm/x.py, line 1",
    ),
    "factors changed round": (
        "nanolm/x.py",
        "p = silu(self.w_gate(x))\nq = self.w_down(self.w_up(x) * p)\n",
        "nanolm/x.py, line 1",
    ),
    "a result named first": ("nanolm/x.py", "a = silu(f(z))\nb = g(a * h(z))\nreturn b\n", "nanolm/x.py, line 1"),
    "two statements on a line": ("nanolm/x.py", renamed(ROPE).replace("\n", "; "), "nanolm/x.py, line 1"),
    "under other conditions": (
        "nanolm/x.py",
        f"for i in range(3):\n    if i:\n{textwrap.indent(renamed(GQA), ' ' * 8)}",
        "nanolm/x.py, line 4",
    ),
    "in a comment": ("nanolm/x.py", "# " + "\n# ".join(renamed(ROPE).splitlines()), "nanolm/x.py, line 1"),
    "in a comment in prose": (
        "nanolm/x.py",
        "x = 1  # the trick is: return x.repeat_interleave(G, dim=1).\n",
        "nanolm/x.py, line 1",
    ),
    "in a docstring": ("nanolm/x.py", f'"""Doc.\n\n{renamed(ROPE)}"""\n', "nanolm/x.py, line 3"),
    "in a string with escapes": ("nanolm/x.py", f"\n\nTEXT = {renamed(ROPE)!r}\n", "nanolm/x.py, line 3"),
    "in a Markdown fence": ("README.md", f"Look:\n\n```python\n{renamed(ROPE)}```\n", "README.md, line 4"),
    "in a Markdown quotation": ("README.md", "> " + "\n> ".join(renamed(ROPE).splitlines()), "README.md, line 1"),
    "in backticks": ("README.md", "\nWrite `q.repeat_interleave(n, dim=1)`, then go on.", "README.md, line 2"),
    "broken over lines": ("LICENSE", "\n".join(textwrap.wrap("well, " + ROPE, 30)), "LICENSE, line 1"),
    "in TOML": ("tests/x.toml", HINT, "tests/x.toml, line 2"),
    "in JSON": ("tests/x.json", json.dumps({"a": {"b": [renamed(ROPE)]}}, indent=1), "tests/x.json, line 4"),
    "in a notebook's cell": ("notebooks/x.ipynb", notebook(cell("code", ROPE)), "notebooks/x.ipynb, cell 1, line 1"),
    "in a notebook's text": (
        "notebooks/x.ipynb",
        notebook(cell("code", "x = 1"), cell("markdown", f"So:\n\n```\n{renamed(ROPE)}```")),
        "notebooks/x.ipynb, cell 2, line 4",
    ),
    "in a notebook's output, encoded": (
        "notebooks/x.ipynb",
        notebook(IMAGE),
        "notebooks/x.ipynb, cell 1, beside its source, line 1, encoded, line 1",
    ),
    "in a notebook's attachment": (
        "notebooks/x.ipynb",
        notebook(cell("markdown", "look", attachments={"a.png": {"image/png": ROPE64}})),
        "notebooks/x.ipynb, cell 1, beside its source, line 1, encoded, line 1",
    ),
    "in a notebook's metadata": ("x.ipynb", notebook(author=renamed(ROPE)), "x.ipynb, metadata, line 1"),
    "in a tensor's metadata": (
        "tests/x.safetensors",
        save({"a": torch.zeros(3)}, metadata={"note": renamed(ROPE)}),
        "tests/x.safetensors, metadata note, line 2",
    ),
    "in a tensor's name": (
        "tests/x.safetensors",
        save({ROPE: torch.zeros(3)}),
        "tests/x.safetensors, names of tensors, line 1",
    ),
    "in a uint8 tensor": (
        "tests/x.safetensors",
        save({"a": letters(renamed(ROPE), torch.uint8)}),
        "tests/x.safetensors, tensor a, line 1",
    ),
    "in a float tensor": (
        "tests/x.safetensors",
        save({"a": letters(renamed(ROPE), torch.float32)}),
        "tests/x.safetensors, tensor a, line 1",
    ),
    "packed in a tensor": (
        "tests/x.safetensors",
        save({"a": torch.tensor(list(gzip.compress(ROPE.encode())), dtype=torch.int64)}),
        "tests/x.safetensors, tensor a, unpacked, line 1",
    ),
    "compiled": ("nanolm/x.pyc", compiled(ROPE), "nanolm/x.pyc: compiled Python"),
    "compiled, under another name": ("nanolm/x.md", compiled(ROPE), "nanolm/x.md: compiled Python"),
    "as a pickle": ("tests/x.pt", b"\x80\x04\x95" + ROPE.encode(), "tests/x.pt: a file of kind .pt"),
    "as UTF-16": ("README.md", ROPE.encode("utf-16"), "README.md, line 1"),
    "in a zip in a zip": (
        "week.zip",
        zip_of(a_dot_zip=zip_of(b_dot_py=in_function(renamed(ROPE)))),
        "week.zip/a.zip/b.py, line 2",
    ),
    "in a tar": ("week.tar.gz", tar_of("b.py", renamed(ROPE).encode()), "week.tar.gz/b.py, line 1"),
    "encoded in code": ("nanolm/x.py", f"\nDATA = '{ROPE64}'\n", "nanolm/x.py, line 2, encoded, line 1"),
    "encoded twice and packed": (
        "README.md",
        base64.b64encode(base64.b64encode(gzip.compress(renamed(ROPE).encode()))).decode(),
        "README.md, line 1, encoded, line 1, encoded, unpacked, line 1",
    ),
    "as hexadecimal": ("README.md", ROPE.encode().hex(), "README.md, line 1, encoded, line 1"),
    "as a file's name": ("a, b = x[..., 0::2], x[..., 1::2].md", "", "the name of a, b = x"),
    "a remark of the solution": ("README.md", "\nNote: minus twice: floor division rounds up!", "README.md, line 2"),
    "with letters between that nobody sees": ("README.md", "\u200b".join(ROPE), "README.md, line 1"),
}


@pytest.mark.parametrize("how", PLANTED)
def test_a_planted_leak_is_named_with_file_and_line(guard, how):
    name, data, place = PLANTED[how]
    found = [str(leak) for leak in guard.leaks(name, data if isinstance(data, bytes) else data.encode())]
    assert [leak for leak in found if leak.startswith(place)], found


@pytest.mark.parametrize("gap", REGIONS)
def test_every_solution_is_found_as_it_stands(guard, gap):
    code = textwrap.dedent("\n".join(gap.lines))
    assert guard.leaks("x.md", f"So:\n\n{code}\n".encode())


@pytest.mark.parametrize("gap", REGIONS)
def test_every_solution_is_found_under_other_names(guard, gap):
    found = guard.leaks("x.py", in_function(renamed(textwrap.dedent("\n".join(gap.lines)))).encode())
    assert bool(found) is (gap.exercise.name not in SHOWN)


def test_every_rubric_is_found(guard):
    cells = json.loads((WEEK / NOTEBOOK).read_text(encoding="utf-8"))["cells"]
    answers = [cell for cell in cells if cell["metadata"].get("nbgrader", {}).get("solution")]
    assert answers
    for number, answer in enumerate(answers, 1):
        book = notebook(*[cell("markdown", "")] * (number - 1), answer)
        found = [str(leak) for leak in guard.leaks("week06.ipynb", book)]
        assert found and all(f"the rubric of {answer['metadata']['nbgrader']['grade_id']}" in leak for leak in found)


@pytest.mark.parametrize(
    "line",
    [
        "return x",
        "x = x + y",
        "return inputs, targets",
        "x = torch.randn(2, 3, 8)",
        "a, b = x.shape[-2:]",
        "gate = torch.nn.functional.silu(z)",
        "B, T, D = x.shape",
        "logits = model(tokens)[:, :-1]",
        "n = x / r\ng = upstream * weight",
        "for i, (start, length) in enumerate(spans):\n    pass",
        "if cap is None:\n    return z",
        "y = x.pow(2).mean(dim=-1).sqrt()",
        "angles = positions * step",
        "targets = tokens.clone()",
        "mask = torch.ones(T, T, dtype=torch.bool).tril()",
        "return torch.cat(parts), torch.cat(others)",
        "q = self.w_q(x)",
    ],
)
def test_what_everybody_writes_is_no_leak(guard, line):
    assert [str(leak) for leak in guard.leaks("x.py", line.encode())] == []


def test_what_the_stubs_show_is_no_leak(guard):
    for name, text in generate().items():
        assert guard.leaks(f"exercises_en/{name}", text.encode()) == []
    for formula in ("cap * tanh(z / cap)", "2 * L * K * H * bytes", "w_down(silu(w_gate(x)) * w_up(x))"):
        assert guard.leaks("README.md", f"The formula is `{formula}`.".encode()) == []


def test_a_change_of_the_stubs_alone_makes_their_text_a_leak():
    strict = Guard(SOURCES, stubs={})
    assert strict.leaks("x.py", b"y = c * torch.tanh(u / c)\n")


def test_an_exercise_that_is_new_is_guarded_at_once():
    text = SOURCES["rope"].replace("angles.cos(), angles.sin()", "angles.cos().exp().log(), angles.sin().exp().log()")
    assert exercises(split(text, "rope.py"))
    code = b"v = c.cos().exp().log(), c.sin().exp().log()\n"
    assert Guard({"rope": text}).leaks("x.py", code) and not Guard({"rope": SOURCES["rope"]}).leaks("x.py", code)
