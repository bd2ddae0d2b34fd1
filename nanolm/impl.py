"""The switch: NANOLM_IMPL names the implementation under test, a package or a folder.

Unset means exercises_en, so that the answer key is never tested by accident. Only this module
turns a name into code; everything else asks `load()`.
"""

import ast
import hashlib
import importlib
import importlib.util
import os
import sys
import traceback
from pathlib import Path

DEFAULT = "exercises_en"
ROOT = Path(__file__).resolve().parent.parent

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
# Siblings that a file imports by contract; a file can't be read before them.
NEEDS = {"attention": ("modules", "rope"), "model": ("modules", "rope", "attention")}


class ImplementationError(Exception):
    """The implementation under test can't be used; the message is one sentence for the student."""


class Implementation:
    """Public names of one implementation, loaded file by file when they are first asked for."""

    def __init__(self, name, folder):
        self.name = name
        self.folder = folder
        self._package = f"_nanolm_impl_{hashlib.sha256(str(folder).encode()).hexdigest()[:16]}"

    def __getattr__(self, name):
        if name not in FILE_OF:
            raise AttributeError(f"{name} is not a public name of the exercises.")
        module = self.module(FILE_OF[name])
        if not hasattr(module, name):
            raise ImplementationError(
                f"{self.path(FILE_OF[name])} has no {name}: "
                f"put it back under exactly this name (NANOLM_IMPL is {self.name})."
            )
        return getattr(module, name)

    def path(self, module):
        """The file of one module, as short as it can be shown."""
        file = self.folder / f"{module}.py"
        try:
            return file.relative_to(Path.cwd())
        except ValueError:
            return file

    def source(self, module):
        """The text of one file; ImplementationError where it is missing or not UTF-8 text."""
        try:
            return (self.folder / f"{module}.py").read_text(encoding="utf-8-sig")
        except FileNotFoundError:
            raise ImplementationError(
                f"{self.path(module)} is missing: put the file back, or set NANOLM_IMPL to a folder that has it."
            ) from None
        except UnicodeDecodeError as error:
            raise ImplementationError(
                f"{self.path(module)} is not UTF-8 text (byte {error.start}): save it as UTF-8 in your editor."
            ) from None
        except OSError as error:
            raise ImplementationError(f"{self.path(module)} can't be read: {error.strerror}.") from None

    def module(self, module):
        """One imported file; ImplementationError with file and line where that fails."""
        name = f"{self._package}.{module}"
        if name not in sys.modules:
            for needed in (*NEEDS.get(module, ()), module):
                self._check_syntax(needed)
            self._make_package()
            try:
                importlib.import_module(name)
            except (Exception, SystemExit) as error:
                raise ImplementationError(self._import_sentence(module, error)) from error
        return sys.modules[name]

    def _check_syntax(self, module):
        path = self.path(module)
        try:
            ast.parse(self.source(module), filename=str(path))
        except SyntaxError as error:
            raise ImplementationError(
                f"{path}, line {error.lineno}: Python can't read this line ({error.msg}); fix it and run again."
            ) from None
        except ValueError as error:  # a NUL byte
            raise ImplementationError(f"{path} can't be read as Python ({error}): save it again as text.") from None

    def _make_package(self):
        if self._package in sys.modules:
            return
        spec = importlib.util.spec_from_loader(self._package, loader=None, is_package=True)
        spec.submodule_search_locations = [str(self.folder)]
        sys.modules[self._package] = importlib.util.module_from_spec(spec)

    def _import_sentence(self, module, error):
        own = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).parent == self.folder]
        path = self.path(Path(own[-1].filename).stem) if own else self.path(module)
        line = f", line {own[-1].lineno}" if own else ""
        what = str(error).splitlines()[0] if str(error) else ""
        return f"{path}{line}: importing the file fails with {type(error).__name__}: {what}".rstrip(": ") + "."

    def check(self, modules=CONTRACT):
        """Import these files and look for every public name; ImplementationError at the first problem."""
        for module in modules:
            self.module(module)
            for name in CONTRACT[module]:
                getattr(self, name)
        return self


def load(name=None):
    """The implementation that `name`, else NANOLM_IMPL, else the default names."""
    name = name or os.environ.get("NANOLM_IMPL") or DEFAULT
    folder = _find(name)
    if folder is None:
        raise ImplementationError(
            f"NANOLM_IMPL is {name!r}, but there is no package and no folder of that name: "
            f"set it to {DEFAULT}, or to the folder that holds your modules.py."
        )
    if not any((folder / f"{module}.py").is_file() for module in CONTRACT):
        raise ImplementationError(
            f"NANOLM_IMPL is {name!r}, but {folder} holds none of the exercise files ({', '.join(CONTRACT)}): "
            f"set it to {DEFAULT}, or to the folder that holds your modules.py."
        )
    return Implementation(name, folder)


def _find(name):
    for base in (Path.cwd(), ROOT):
        if (base / name).is_dir():
            return (base / name).resolve()
    if all(part.isidentifier() for part in name.split(".")):
        try:
            spec = importlib.util.find_spec(name)
        except ModuleNotFoundError:
            return None
        if spec is not None and spec.submodule_search_locations:
            return Path(next(iter(spec.submodule_search_locations))).resolve()
    return None
