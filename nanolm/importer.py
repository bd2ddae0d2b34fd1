"""Imports a student's files as one package, however they name each other, at home and in the grade alike.

    from .helpers import turn              from helpers import turn
    from exercises_en.helpers import turn  from my_folder.helpers import turn

All four are the same helpers.py beside the file that says it. Names of Python's own library and of what the week
brings stay theirs: a random.py beside it is reached as .random only.
"""

import builtins
import importlib
import importlib.machinery
import importlib.util
import linecache
import sys
import types

from nanolm.source import SourceError, text_of, tree_of

PROVIDED = ("torch", "numpy")  # besides Python's own library: what is there wherever code is graded
TAKEN = frozenset(sys.stdlib_module_names) | {*PROVIDED, "nanolm"}
ALSO = "exercises_en"  # what the files' folder is called at home, whatever it is called here


def package_of(name, folder):
    """The package `name` of all Python files in `folder`, which are imported when they are asked for."""
    if name not in sys.modules:
        if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
            sys.meta_path.insert(0, _Finder())
        sys.modules[name] = _Package(name, folder)
    return sys.modules[name]


class _Package(types.ModuleType):
    """Its __init__.py is run only where something is asked of it that no file has: a fault there costs little."""

    def __init__(self, name, folder):
        super().__init__(name)
        self._folder = folder
        self.changed = {}  # path of a file -> calls by which its import has changed a setting of the whole program
        self.__spec__ = importlib.util.spec_from_loader(name, loader=None, is_package=True)
        self.__path__ = self.__spec__.submodule_search_locations = [str(folder)]
        self.__package__ = name
        self.__builtins__ = {**vars(builtins), "__import__": _Import(self, folder)}

    def __getattr__(self, name):
        start = self._folder / "__init__.py"
        if not name.startswith("__") and not self.has_file(name) and "__file__" not in vars(self) and start.is_file():
            self.__file__ = str(start)
            exec(_Loader(self.__name__, str(start)).get_code(self.__name__), vars(self))
            if name in vars(self):
                return vars(self)[name]
        raise AttributeError(f"there is no {name}")

    def has_file(self, word):
        """Whether `import word` would find a file or folder of this package."""
        place = self._folder / word
        return word.isidentifier() and (place.with_suffix(".py").is_file() or place.is_dir())

    def is_sure_of(self, word):
        """Whether an absolute import of this word means the same wherever code is graded."""
        named = word == ALSO or word in self._folder.parts or self.has_file(word)
        return word in TAKEN or named or not _is_installed(word)


class _Import:
    """The import statement of the package's files."""

    def __init__(self, package, folder):
        self.package, self.folder = package, folder

    def __call__(self, name, globals=None, locals=None, fromlist=(), level=0):
        own = None if level else self._own(name.split("."), fromlist or ())
        if own is None:
            return builtins.__import__(name, globals, locals, fromlist, level)
        prefix, rest = own
        full = ".".join((self.package.__name__, *rest))
        if fromlist:
            return builtins.__import__(full, globals, locals, fromlist, 0)
        importlib.import_module(full)
        if not prefix:
            return sys.modules[f"{self.package.__name__}.{rest[0]}"]
        found = self.package
        for word in reversed(prefix[1:]):  # import week.exercises_en.rope gives a `week` through which rope is found
            outer = types.ModuleType(word)
            setattr(outer, word, found)
            found = outer
        return found

    def _own(self, words, fromlist):
        """(words before the package's name, words inside it) of what an absolute name means here; None if not ours."""
        if words[0] in TAKEN:
            return None
        if self.package.has_file(words[0]):
            return (), words
        for count in range(len(words), 0, -1):
            prefix, rest = words[:count], words[count:]
            named = prefix == [ALSO] or tuple(prefix) == self.folder.parts[-count:]
            if named and (not rest or self.package.has_file(rest[0])):
                return prefix, rest
        inside = words[1:2] or fromlist
        if any(map(self.package.has_file, inside)) and not _is_installed(words[0]):
            return words[:1], words[1:]  # the folder has had this name where the file was written
        return None


def _is_installed(word):
    try:
        return importlib.util.find_spec(word) is not None
    except (ImportError, ValueError):
        return True  # it is there, and odd


class _Finder:
    """Finds the files of these packages, and of no other."""

    def find_spec(self, name, path=None, target=None):
        if not isinstance(sys.modules.get(name.partition(".")[0]), _Package):
            return None
        for place in path or ():
            spec = importlib.machinery.FileFinder(place, (_Loader, [".py"])).find_spec(name)
            if spec is not None:
                return spec
        return None


class _Loader(importlib.machinery.SourceFileLoader):
    """Reads a file as nanolm.source does, and compiles it anew each time: no cache lies beside students' files."""

    def get_source(self, name):
        return text_of(self.get_data(self.path), _shown(self, name))

    def get_code(self, name):
        text = self.get_source(name)
        stat = self.path_stats(self.path)  # what a traceback shows: the lines as they were read, in any encoding
        linecache.cache[self.path] = (stat["size"], stat["mtime"], text.splitlines(keepends=True), self.path)
        try:
            return compile(tree_of(text, _shown(self, name)), self.path, "exec", dont_inherit=True)
        except SyntaxError as error:  # what the tree alone does not show: a return outside of a function
            raise SourceError(f"{_shown(self, name)}, line {error.lineno}: {error.msg}: fix it.") from None
        except (RecursionError, MemoryError):
            raise SourceError(f"{_shown(self, name)} is nested too deeply: write shorter expressions.") from None
        except ValueError as error:
            raise SourceError(f"{_shown(self, name)} can't be read as Python ({error}).") from None

    def exec_module(self, module):
        package = sys.modules[module.__name__.partition(".")[0]]
        module.__builtins__ = package.__builtins__
        from nanolm.settings import kept  # brings torch, which whoever imports no student code need not wait for

        with kept(package.changed.setdefault(self.path, set())):
            super().exec_module(module)


def _shown(loader, name):
    """A file's path as it can be shown, from where the command runs."""
    from nanolm.impl import shown  # which imports this module

    return shown(loader.path)
