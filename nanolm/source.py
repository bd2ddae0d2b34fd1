"""What the bytes of a student's file say: the one place where they are read, at home and for a grade alike.

Every function is linear in the size of the file, which is limited, and runs nothing of it.
"""

import ast
import codecs
import os
import platform
import re

FILE_LIMIT = 200_000  # bytes of one file; the longest of the answer key has 10,000
FILES_LIMIT, BYTES_LIMIT = 30, 1 << 20  # of all Python files together
ENTRIES_LIMIT = 2_000  # of folders that are looked at
DEEPEST = 3  # folders that are looked into, one below the other
NOT_CODE = {"__MACOSX", "__pycache__", "site-packages", "node_modules"}
PYTHON = ".".join(platform.python_version_tuple()[:2])
MARKS = {  # byte order mark -> encoding; the long ones first, as one begins with another
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
DECLARED = re.compile(r"[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)", re.ASCII)  # as PEP 263 has it
NO_CODE = re.compile(r"[ \t\f]*(?:#.*)?")
# What editors write. Others that Python knows are no text (rot13) or not linear (punycode).
KNOWN = re.compile(
    r"utf_?8(_?sig)?|u8|(us_?)?ascii|646|l[1-9]|latin_?[0-9]+|iso_?8859_?[0-9]+(_?e)?|(windows_?|cp|ibm)_?[0-9]{3,5}|"
    r"koi8_?[rtu]|mac_?[a-z]+|gbk|gb_?2312|gb_?18030|big5(_?hkscs)?|s(hift)?_?jis(_?2004|x0213)?|euc_?[a-z0-9_]+|"
    r"iso_?2022_?[a-z0-9_]+|hz(_gb(_2312)?)?|johab|uhc|ms_?kanji|tis_?620"
)
CONFLICT = ("<<<<<<< ", ">>>>>>> ")


class SourceError(Exception):
    """A file can't be read as Python text; the message is one sentence, which begins with its name."""


def entries(folder):
    """Names in a folder that may be code, in order; of a folder without end, the first ones that the system gives."""
    try:
        with os.scandir(folder) as found:
            names = [entry.name for _, entry in zip(range(ENTRIES_LIMIT), found, strict=False)]
    except OSError:  # it may not be read
        return []
    return sorted(name for name in names if not name.startswith(".") and name not in NOT_CODE)


def is_folder(path):
    """Whether it is a folder, and no link to one."""
    return path.is_dir() and not path.is_symlink()


def python_files(folder):
    """Paths of the .py files in a folder and those below, the nearest first; of many, the first ones."""
    level, looked_at = [folder], 0
    for _ in range(DEEPEST):
        below = []
        for place in level:
            for name in entries(place):
                looked_at += 1
                if looked_at > ENTRIES_LIMIT:
                    return
                path = place / name
                if name.endswith(".py"):
                    yield path
                elif is_folder(path):
                    below.append(path)
        level = below


def text_of(data, name):
    """The text in the bytes of a file, its line ends made plain; a declared encoding becomes that of the text, UTF-8.

    A byte order mark says the encoding, else a comment in the first two lines (PEP 263), else it is UTF-8.
    """
    if len(data) > FILE_LIMIT:
        raise SourceError(f"{name} is larger than {FILE_LIMIT:,} bytes: hand in your code only.")
    encoding = next((encoding for mark, encoding in MARKS.items() if data.startswith(mark)), None)
    encoding = encoding or _declared_encoding(data, name) or "utf-8"
    try:
        text = data.decode(encoding)
    except UnicodeError as error:
        place = f" (byte {error.start})" if isinstance(error, UnicodeDecodeError) else ""
        said = encoding.removesuffix("-sig").upper()
        raise SourceError(f"{name} is not {said} text{place}: save it as UTF-8.") from None
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        raise SourceError(f"{name}, line {line}, holds a NUL byte: save it again as text.")
    text = _with_utf_8_declared(text)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise SourceError(f"{name} holds half of a character (a lone surrogate): save it as UTF-8.") from None
    return text


def _declaration(lines):
    """(number of the line, match) of the comment that declares an encoding, or None."""
    for number, line in enumerate(lines[:2]):
        if found := DECLARED.match(line):
            return number, found
        if not NO_CODE.fullmatch(line):
            return None
    return None


def _declared_encoding(data, name):
    found = _declaration(re.split("\r\n|\r|\n", data.decode("latin-1"), maxsplit=2))
    if found is None:
        return None
    encoding = found[1][1]
    short = encoding.lower().replace("_", "-")
    for known in ("utf-8", "latin-1", "iso-8859-1"):
        if short == known or short.startswith(f"{known}-"):  # utf-8-unix, as Emacs writes it
            return known
    if not KNOWN.fullmatch(re.sub("[-.]", "_", encoding.lower())) or not _is_text(encoding):
        raise SourceError(f"{name} declares the encoding {encoding[:40]}, which is not read here: save it as UTF-8.")
    return encoding


def _is_text(encoding):
    try:
        codecs.lookup(encoding)
        "".encode(encoding)  # LookupError where it is no encoding of text
    except LookupError:
        return False
    return True


def _with_utf_8_declared(text):
    lines = text.split("\n", 2)
    if found := _declaration(lines):
        number, match = found
        lines[number] = f"{lines[number][: match.start(1)]}utf-8{lines[number][match.end(1) :]}"
    return "\n".join(lines)


def tree_of(text, name):
    """The syntax tree of a file; SourceError with the line that this Python can't read."""
    try:
        return ast.parse(text, filename=name)
    except SyntaxError as error:
        conflict = [number for number, line in enumerate(text.split("\n"), 1) if line.startswith(CONFLICT)]
        if conflict:
            raise SourceError(
                f"{name}, line {conflict[0]}, holds the marks of a merge conflict: choose one version."
            ) from None
        raise SourceError(
            f"{name}, line {error.lineno}: Python {PYTHON}, which runs it here, can't read this line ({error.msg}): "
            "fix it, or write it as this version has it."
        ) from None
    except (RecursionError, MemoryError):
        raise SourceError(f"{name} is nested too deeply for Python {PYTHON}: write shorter expressions.") from None
    except ValueError as error:
        raise SourceError(f"{name} can't be read as Python ({error}): save it again as text.") from None


def taken_from_torch(text, among):
    """Names of these that a file imports from torch or takes from what it imports: of nn in nn.RMSNorm, of no self.

    Nothing of a file that can't be read: it can't be imported either.
    """
    try:
        tree = tree_of(text, "it")
    except SourceError:
        return []
    modules, names = set(), {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            package = "." * node.level + (node.module or "") + "." if isinstance(node, ast.ImportFrom) else ""
            for alias in node.names:
                if (package + alias.name).split(".")[0] == "torch":
                    modules.add((alias.asname or alias.name).split(".")[0])
                    names[alias.name] = None
    roots = {}  # attribute -> the name that its chain begins with; each is walked once
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            chain = []
            while isinstance(node, ast.Attribute) and node not in roots:
                chain.append(node)
                node = node.value
            root = roots.get(node) if isinstance(node, ast.Attribute) else getattr(node, "id", None)
            roots.update(dict.fromkeys(chain, root))
    names.update((node.attr, None) for node, root in roots.items() if root in modules)
    return [name for name in names if name in among]


def imported(text):
    """The first words of what a file imports absolutely: torch of torch.nn."""
    try:
        tree = tree_of(text, "it")
    except SourceError:
        return set()
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add(node.module.split(".")[0])
    return found
