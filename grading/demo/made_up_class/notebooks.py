"""The notebooks of the demo class: the released one with written answers, and what students do to it."""

import copy
import json

# A written answer is looked up by a word of its cell's name; "" answers everything else.
GOOD = {
    "ffn": "A plain FFN has 2 * D * 4D = 8D^2 parameters, a gated one 3 * D * F. Setting them equal gives F = 8D / 3.",
    "cache": "2 (K and V) * L layers * K heads * H * bytes a token: it grows with T and with K, not with N. GQA "
    "divides it by G = N / K.",
    "pre-norm": "Post-norm puts the norm on the stream, so every layer's gradient passes through it and early layers "
    "get little: it needs warm-up. Pre-norm leaves the stream alone, and the identity carries the gradient.",
    "rope": "R(m)^T R(n) = R(n - m), because turning back by m and on by n is turning by n - m. So a score knows the "
    "distance only.",
    "guards": "QK-norm bounds the scores by the gains; soft-capping bends large ones; z-loss holds log Z near 0.",
    "tying": "One matrix for two jobs saves V * D parameters, a third of a small model and little of a big one.",
    "": "The mean carries no information that the next matrix could not add again, so RMSNorm leaves it out; the scale "
    "is what has to be controlled. I checked it by shifting x: the output changes, and the tests say so.",
}
SHORT = {"ffn": "So that both have 8D^2.", "cache": "2*L*K*H*2 bytes", "pre-norm": "more stable", "": "see the code"}
OFF = {"": "We discussed this in the lecture, and I agree with what was said there."}
HOSTILE = {"": "<script>alert('full marks')</script><img src=x onerror=alert(1)> =HYPERLINK(\"http://x.example\")"}
NOTHING = {}
ANSWERS = {"good": GOOD, "short": SHORT, "off": OFF, "hostile": HOSTILE, "none": NOTHING}

CONFLICT = "\n<<<<<<< HEAD\n=======\n>>>>>>> mine\n"


def answered(released, kind):
    """The released notebook, a dict, with the answers of one kind in its cells for text."""
    notebook, texts = copy.deepcopy(released), ANSWERS[kind]
    for cell in notebook["cells"]:
        marks = cell["metadata"].get("nbgrader", {})
        if marks.get("solution") and cell["cell_type"] == "markdown":
            word = next((word for word in texts if word and word in marks["grade_id"]), "")
            if word in texts:
                cell["source"] = texts[word]
    return notebook


def handed_in(released, kind, harm):
    """{file name: bytes} of the notebook with answers of a kind, after one of HARMS; empty where it is missing."""
    notebook = answered(released, kind)
    changed = HARMS[harm](notebook) if harm in HARMS else notebook
    data = (json.dumps(changed, indent=1, ensure_ascii=False) + "\n").encode()
    return OF_BYTES.get(harm, lambda data: {"week06.ipynb": data})(data)


def _graded(notebook):
    """The places of the cells that give points."""
    return [at for at, cell in enumerate(notebook["cells"]) if cell["metadata"].get("nbgrader", {}).get("grade")]


def _deleted(notebook):
    del notebook["cells"][_graded(notebook)[0]]
    return notebook


def _duplicated(notebook):
    at = _graded(notebook)[0]
    twin = copy.deepcopy(notebook["cells"][at])
    if "id" in twin:
        twin["id"] = "pasted"  # as Jupyter does: a new id, the same marks
    notebook["cells"].insert(at + 1, twin)
    return notebook


def _reordered(notebook):
    places = _graded(notebook)
    for at, cell in zip(places, [notebook["cells"][at] for at in reversed(places)], strict=True):
        notebook["cells"][at] = cell
    return notebook


def _points(notebook):
    for at in _graded(notebook):
        notebook["cells"][at]["metadata"]["nbgrader"]["points"] = 1000
    return notebook


def _to_text(notebook):
    for at in _graded(notebook)[:2]:
        cell = notebook["cells"][at]
        cell["cell_type"] = "markdown"
        cell.pop("outputs", None), cell.pop("execution_count", None)
    return notebook


def _unmarked(notebook):
    for cell in notebook["cells"]:
        cell["metadata"].pop("nbgrader", None)
    return notebook


def _scripted(notebook):
    """A cell of code in front that would run first, were the notebook run."""
    code = "import os\nget_ipython().ast_node_interactivity = 'none'\nos._exit(0)\n"
    cell = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": code}
    if notebook["nbformat_minor"] >= 5:
        cell["id"] = "hostile"
    notebook["cells"].insert(0, cell)
    return notebook


HARMS = {
    "deleted": _deleted, "duplicated": _duplicated, "reordered": _reordered, "points": _points, "to text": _to_text,
    "unmarked": _unmarked, "scripted": _scripted,
}  # fmt: skip
OF_BYTES = {
    "missing": lambda data: {},
    "empty": lambda data: {"week06.ipynb": b""},
    "not json": lambda data: {"week06.ipynb": b"Please find my work in the other file.\n"},
    "truncated": lambda data: {"week06.ipynb": data[: len(data) * 3 // 5]},
    "conflict": lambda data: {"week06.ipynb": data + CONFLICT.encode()},
    "renamed": lambda data: {"week06 (1).ipynb": data},
    "bom": lambda data: {"week06.ipynb": b"\xef\xbb\xbf" + data},
}
