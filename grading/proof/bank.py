"""The bank of mistakes and of right programs, as edits of reference/. In this room:

    mistakes/PART.toml       [[mistake]]  id, then file, find, write; or several [[mistake.patch]]
    mistakes/hollow/         programs that compute nothing, as variants with the `most` points of a part
    mistakes/outside.toml    [[outside]]  id, reason: known mistakes that the contract leaves no room for
    variants/TOPIC.toml      [[variant]]  id, title, then [[variant.replace]] file, function, code;
                                                  or `of`, the ids of the variants that it combines
    variants/slow/TOPIC.toml the same; right programs that are slow, each with `advice`, the test that says so
    variants/outside.toml    [[outside]]  id, reason

`materialise` writes an edited copy of an implementation into a folder, which NANOLM_IMPL can then
name. Only text is handled here: no code is imported, so that a kill matrix can start from this.
"""

import ast
import textwrap
import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path

from grading.paths import ROOT

MISTAKES = ROOT / "grading" / "proof" / "mistakes"
VARIANTS = ROOT / "grading" / "proof" / "variants"
SLOW, HOLLOW = VARIANTS / "slow", MISTAKES / "hollow"
METADATA = ROOT / "tests" / "machinery" / "hints.toml"  # what a student may see
OUTSIDE = "outside.toml"


class PatchError(ValueError):
    """An entry of the bank can't be read or applied; one sentence with id, file and reason."""


class OverlapError(PatchError):
    """Two changes touch the same lines, so they can't be made in one program."""


@dataclass(frozen=True)
class Patch:
    """`find` stands exactly once in `file`; students write `write` in its place."""

    file: str
    find: str
    write: str

    def span(self, text):
        """Where it applies in the text, (start, end), and what comes there."""
        count = text.count(self.find)
        if count != 1:
            raise PatchError(f"its text to find stands there {count} times, not once")
        start = text.index(self.find)
        return start, start + len(self.find), self.write


@dataclass(frozen=True)
class Replacement:
    """A whole function, method or class of `file`, by its dotted name; `code` may bring helpers along."""

    file: str
    function: str
    code: str

    def span(self, text):
        """Where it applies in the text, (start, end), and what comes there."""
        node = _definition(ast.parse(text), self.function)
        if node is None:
            raise PatchError(f"there is no {self.function} to replace")
        first = min([node.lineno] + [decorator.lineno for decorator in node.decorator_list])
        lines = text.splitlines(keepends=True)
        code = textwrap.indent(textwrap.dedent(self.code).strip("\n") + "\n", " " * node.col_offset)
        return len("".join(lines[: first - 1])), len("".join(lines[: node.end_lineno])), code


@dataclass(frozen=True)
class Mistake:
    """One thing that students write. `origin` is its name in the list that it was carried over from.

    `kind` says of which kind of question it is a sample, one of those in grid.toml; "" where it is of none.
    """

    id: str
    part: str
    edits: tuple[Patch, ...]
    origin: str
    kind: str = ""


@dataclass(frozen=True)
class Variant:
    """One right program. `only` is "core" where the depth parts are left as stubs, else "all".

    `advice` is the test that says what is slow in it, where there is something; `most` the points of a part that a
    program which computes nothing may earn.
    """

    id: str
    title: str
    edits: tuple[Replacement, ...]
    only: str
    advice: str
    most: dict = field(default_factory=dict, hash=False)


def load_mistakes(folder=MISTAKES):
    """Every mistake by id, in the order of the files' names."""
    mistakes = {}
    for path in _bank_files(folder):
        for entry in _entries(path, "mistake"):
            origin, kind = entry.get("from", entry["id"]), entry.get("kind", "")
            _add(mistakes, Mistake(entry["id"], path.stem, _patches(entry, path), origin, kind), path)
    return mistakes


def load_variants(folder=VARIANTS):
    """Every variant by id; a combination comes with the edits of all that it names."""
    variants, combined = {}, []
    for path in _bank_files(folder):
        for entry in _entries(path, "variant"):
            edits = tuple(_read(Replacement, table, entry["id"], path) for table in entry.get("replace", ()))
            title, only, advice = _need(entry, "title", path), entry.get("only", "all"), entry.get("advice", "")
            variant = Variant(entry["id"], title, edits, only, advice, entry.get("most", {}))
            _add(variants, variant, path)
            combined += [(variant, name, path) for name in entry.get("of", ())]
    for variant, name, path in combined:
        if name not in variants:
            raise PatchError(f"{variant.id} in {path.name} combines {name}, which is no variant.")
        whole = variants[variant.id]
        variants[variant.id] = replace(whole, edits=whole.edits + variants[name].edits)
    return variants


def load_outside(folder=MISTAKES):
    """Id -> reason of the entries that the contract leaves no room for."""
    path = Path(folder) / OUTSIDE
    return {entry["id"]: _need(entry, "reason", path) for entry in _entries(path, "outside")}


def load_metadata(path=METADATA):
    """Id -> what a student may see of each mistake."""
    found = {}
    for entry in _entries(Path(path), "mistake"):
        if entry["id"] in found:
            raise PatchError(f"{entry['id']} stands twice in {Path(path).name}: an id names one entry.")
        found[entry["id"]] = entry
    return found


def materialise(base, changes, into):
    """Copy the Python files of folder `base` into the folder `into` with these mistakes or variants made.

    OverlapError where two changes meet, PatchError where one does not apply or leaves a file that
    is no Python. Returns the names of the files that changed.
    """
    texts = {path.name: path.read_text(encoding="utf-8") for path in sorted(Path(base).glob("*.py"))}
    changed = apply(texts, changes)
    into = Path(into)
    into.mkdir(parents=True, exist_ok=True)
    for name, text in {**texts, **changed}.items():
        (into / name).write_text(text, encoding="utf-8", newline="\n")
    return sorted(changed)


def apply(texts, changes):
    """{file: text} with the changes made, of the files that changed. Every place is looked up in the given texts."""
    spans = {}
    for change in changes:
        for edit in change.edits:
            if edit.file not in texts:
                raise PatchError(f"{change.id} can't be applied: there is no {edit.file}.")
            try:
                span = edit.span(texts[edit.file])
            except PatchError as error:
                raise PatchError(f"{change.id} can't be applied to {edit.file}: {error}.") from None
            spans.setdefault(edit.file, []).append((*span, change.id))
    return {file: _rewrite(texts[file], found, file) for file, found in spans.items()}


def _rewrite(text, spans, file):
    spans.sort(key=lambda span: span[:2])
    for (_, end, _, first), (start, _, _, second) in zip(spans, spans[1:], strict=False):
        if start < end:
            raise OverlapError(f"{first} and {second} change the same lines of {file}.")
    for start, end, new, _ in reversed(spans):
        text = text[:start] + new + text[end:]
    try:
        ast.parse(text)
    except SyntaxError as error:
        names = " with ".join(dict.fromkeys(span[3] for span in spans))
        raise PatchError(f"{names} leaves {file} unreadable: line {error.lineno}, {error.msg}.") from None
    return text


def _definition(node, name):
    """The definition of a dotted name, such as RMSNorm.forward, below this node."""
    first, _, rest = name.partition(".")
    for child in node.body:
        if isinstance(child, (ast.FunctionDef, ast.ClassDef)) and child.name == first:
            return _definition(child, rest) if rest else child
    return None


def _bank_files(folder):
    return sorted(path for path in Path(folder).glob("*.toml") if path.name != OUTSIDE)


def _entries(path, kind):
    try:
        entries = tomllib.loads(path.read_text(encoding="utf-8")).get(kind, [])
    except tomllib.TOMLDecodeError as error:
        raise PatchError(f"{path.name} is no TOML: {error}.") from None
    for entry in entries:
        _need(entry, "id", path)
    return entries


def _patches(entry, path):
    return tuple(_read(Patch, table, entry["id"], path) for table in entry.get("patch", (entry,)))


def _read(kind, table, name, path):
    values = (_need(table, field, path, name) for field in kind.__dataclass_fields__)
    return kind(*values)


def _need(table, field, path, name=None):
    if field not in table:
        raise PatchError(f"{name or table.get('id', 'an entry')} in {path.name} has no {field}.")
    return table[field]


def _add(bank, entry, path):
    if entry.id in bank:
        raise PatchError(f"{entry.id} stands twice in the bank, the second time in {path.name}: choose another id.")
    bank[entry.id] = entry
