"""The switch: NANOLM_IMPL names the implementation under test, a package or a folder.

Unset means exercises_en, so that the answer key is never tested by accident. Only this module
turns a name into code; everything else asks `load()`.
"""

import contextlib
import hashlib
import importlib
import importlib.util
import itertools
import os
import re
import sys
import traceback
from pathlib import Path

from nanolm.importer import PROVIDED, package_of
from nanolm.source import FILE_LIMIT, FILES_LIMIT, SourceError, imported, python_files, text_of

DEFAULT = "exercises_en"
ROOT = Path(__file__).resolve().parent.parent
# Where the library is installed by itself, on a JupyterHub, it has the week's tests inside; else they lie beside it.
INSTALLED_TESTS = Path(__file__).resolve().parent / "week_tests"
TESTS = INSTALLED_TESTS if INSTALLED_TESTS.is_dir() else ROOT / "tests"

# The contract: which file holds which public names.
CONTRACT = {
    "modules": ("RMSNorm", "ffn_dim", "SwiGLU", "rmsnorm_backward"),
    "rope": ("rope_frequencies", "rope_cos_sin", "apply_rope"),
    "attention": ("repeat_kv", "causal_mask", "softcap", "GroupedQueryAttention"),
    "model": ("Block",),
    "budget": ("count_parameters", "kv_cache_bytes_per_token"),
    "objectives": (
        "causal_lm_loss",
        "z_loss",
        "masked_lm_corruption",
        "prefix_lm_mask",
        "prefix_lm_targets",
        "span_corruption",
    ),
}
FILE_OF = {name: module for module, names in CONTRACT.items() for name in names}


class ImplementationError(Exception):
    """The implementation under test can't be used; the message is one sentence for the student.

    It names the file at fault first.
    """

    @property
    def module(self):
        """The week's file at fault; empty where it is none of them."""
        found = re.search(r"(\w+)\.py\b", str(self))
        return found[1] if found and found[1] in CONTRACT else ""


class Implementation:
    """Public names of one implementation, loaded file by file when they are first asked for."""

    def __init__(self, name, folder):
        self.name = name
        self.folder = folder
        self._package = f"_nanolm_impl_{hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]}"

    def __getattr__(self, name):
        if name not in FILE_OF:
            raise AttributeError(f"{name} is not a public name of the exercises.")
        module = self.module(FILE_OF[name])
        if not hasattr(module, name):
            raise ImplementationError(
                f"{self.path(FILE_OF[name])} has no {name}: "
                f"put it back under exactly this name (NANOLM_IMPL is {self.name})."
            )
        found = getattr(module, name)
        if not callable(found):
            kind = "class" if name[0].isupper() else "function"
            raise ImplementationError(
                f"{self.path(FILE_OF[name])}: {name} is no {kind} but {type(found).__name__}: is its name used twice?"
            )
        return found

    def path(self, module):
        """The file of one module, as short as it can be shown."""
        return shown(self.folder / f"{module}.py")

    def source(self, module):
        """The text of one file; ImplementationError where it is missing or no text."""
        try:
            with (self.folder / f"{module}.py").open("rb") as stream:
                return text_of(stream.read(FILE_LIMIT + 1), str(self.path(module)))
        except FileNotFoundError:
            raise ImplementationError(
                f"{self.path(module)} is missing: put the file back, or set NANOLM_IMPL to a folder that has it."
            ) from None
        except SourceError as error:
            raise ImplementationError(str(error)) from None
        except OSError as error:
            raise ImplementationError(f"{self.path(module)} can't be read: {error.strerror}.") from None

    def beside(self):
        """The texts of the files that the contract does not name, by their paths in the folder without .py."""
        found = {}
        for path in itertools.islice(python_files(self.folder), FILES_LIMIT):
            name = path.relative_to(self.folder).as_posix().removesuffix(".py")
            with contextlib.suppress(ImplementationError):  # what can't be read can't be imported
                found.update({} if name in CONTRACT else {name: self.source(name)})
        return found

    def module(self, module):
        """One imported file; ImplementationError with file and line where that fails."""
        package_of(self._package, self.folder)
        name = f"{self._package}.{module}"
        if name not in sys.modules:
            self.source(module)  # where it is missing, this says so
            try:
                importlib.import_module(name)
            except SourceError as error:
                raise ImplementationError(str(error)) from None
            except (Exception, SystemExit) as error:
                raise ImplementationError(self._import_sentence(module, error)) from error
        return sys.modules[name]

    def settings_changed_by(self, module):
        """Calls by which the import of this file, or of those that no contract names, changes a setting of torch."""
        self.module(module)
        changed = package_of(self._package, self.folder).changed
        own = {self.folder / f"{name}.py" for name in CONTRACT if name != module}
        return set().union(*(calls for path, calls in changed.items() if Path(path) not in own))

    def _import_sentence(self, module, error):
        own = [f for f in traceback.extract_tb(error.__traceback__) if self.folder in Path(f.filename).parents]
        path = shown(own[-1].filename) if own else self.path(module)
        line = f", line {own[-1].lineno}" if own else ""
        if isinstance(error, ModuleNotFoundError) and error.name:
            if error.name.startswith(f"{self._package}."):
                missing = error.name.removeprefix(f"{self._package}.").replace(".", "/")
                return f"{missing}.py is missing, which {path}{line} imports: put the file beside it."
            return (
                f"{path}{line}: importing the file fails with ModuleNotFoundError: No module named {error.name!r}. "
                f"Where code is graded there are {', '.join(PROVIDED)} and Python's own library."
            )
        what = str(error).splitlines()[0] if str(error) else ""
        lacks = re.match(r"cannot import name '(\w+)'", what)
        if lacks and isinstance(error, ImportError) and (error.name or "").startswith(f"{self._package}."):
            file = error.name.removeprefix(f"{self._package}.").replace(".", "/")
            return f"{file}.py has no {lacks[1]}, which {path}{line} imports: put it back under exactly this name."
        what = what.replace(f"{self._package}.", ".")
        return f"{path}{line}: importing the file fails with {type(error).__name__}: {what}".rstrip(": ") + "."

    def not_provided(self):
        """{package: a file} of what these files import that is not there where code is graded."""
        texts, found = self.beside(), {}
        own = package_of(self._package, self.folder)
        for name in CONTRACT:
            with contextlib.suppress(ImplementationError):  # it says so itself, when it is asked
                texts[name] = self.source(name)
        for file, text in texts.items():
            for word in sorted(imported(text)):
                if not own.is_sure_of(word):
                    found.setdefault(word, f"{file}.py")
        return found

    def check(self, modules=CONTRACT):
        """Import these files and look for every public name; ImplementationError at the first problem."""
        for module in modules:
            self.module(module)
            for name in CONTRACT[module]:
                getattr(self, name)
        return self


def shown(path):
    """A path as short as it can be shown from here, in letters that can be printed."""
    path = Path(path)
    try:
        path = path.relative_to(Path.cwd())
    except ValueError:
        pass
    return printable(str(path))


def printable(text):
    """Bytes of a name that are no UTF-8 as they are written in Python."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def load(name=None):
    """The implementation that `name`, else NANOLM_IMPL, else the default names."""
    name = name or os.environ.get("NANOLM_IMPL") or DEFAULT
    said = printable(name)
    where = f"set it to {DEFAULT}, or to the folder that holds your modules.py."
    try:
        folder = _find(name)
        if folder is None:
            raise ImplementationError(
                f"NANOLM_IMPL is {said!r}, but there is no package and no folder of that name: {where}"
            )
        names = {entry.name for entry in folder.iterdir()}
    except OSError as error:
        sentence = f"NANOLM_IMPL is {said!r}, which can't be looked at ({error.strerror}): {where}"
        raise ImplementationError(sentence) from None
    if not any(f"{module}.py" in names for module in CONTRACT):
        raise ImplementationError(
            f"NANOLM_IMPL is {said!r}, but {shown(folder)} holds none of the exercise files ({', '.join(CONTRACT)}): "
            f"{where}"
        )
    return Implementation(said, folder)


def _find(name):
    for base in (Path.cwd(), ROOT):
        path = base / Path(name).expanduser()
        if path.is_dir():
            return path.resolve()
        if path.is_file():
            raise ImplementationError(
                f"NANOLM_IMPL is {printable(name)!r}, which is a file: name the folder that holds your modules.py"
                f"{', unpacked' if path.suffix != '.py' else ''}, here {shown(path.parent)!r}."
            )
    if all(part.isidentifier() for part in name.split(".")):
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, ValueError):
            return None
        if spec is not None and spec.submodule_search_locations:
            return Path(next(iter(spec.submodule_search_locations))).resolve()
    return None
