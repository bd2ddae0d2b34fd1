"""The rooms import what README's table lets them, and nothing in a circle."""

import ast
import re
import subprocess
from functools import cache

import pytest

from grading.paths import ROOT

ROW = re.compile(r"^\| `([\w/]+)/` \| [^|]+ \|([^|]*)\|$", flags=re.MULTILINE)
ALL = "all"


def table():
    """{room: the rooms that it may import}, from README."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return {room: set(re.findall(r"[\w/]+", allowed)) for room, allowed in ROW.findall(text)}


ROOMS = table()


def room_of(path):
    """The innermost room of the table in which a path of the project lies, or None."""
    return max((room for room in ROOMS if path == room or path.startswith(f"{room}/")), key=len, default=None)


@cache
def place_of(dotted):
    """The path of the module that a dotted name begins with, or None where it is not the project's."""
    words = dotted.split(".")
    if words[0] == "machinery":  # tests/ is on the path
        words.insert(0, "tests")
    for end in range(len(words), 0, -1):
        path = "/".join(words[:end])
        if (ROOT / f"{path}.py").is_file():
            return f"{path}.py"
        if (ROOT / path).is_dir():
            return path
    return None


def imported(tree):
    """The dotted names that a module imports, wherever in it; relative ones stay in their room."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from (f"{node.module}.{name.name}" for name in node.names)


@cache
def sources():
    """(path, its syntax tree) of all Python files of the project that lie in a room."""
    found = []
    tops = sorted({room.split("/")[0] for room in ROOMS})
    for path in sorted(path for top in tops for path in (ROOT / top).rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        if room_of(name) and not name.startswith("grading/week/course_template/source/"):
            found.append((name, ast.parse(path.read_text(encoding="utf-8"))))
    return found


def arrows():
    """{(room, room that it imports): a file that does}."""
    found = {}
    for name, tree in sources():
        for dotted in imported(tree):
            place = place_of(dotted)
            target = place and room_of(place)
            if target and target != room_of(name):
                found.setdefault((room_of(name), target), name)
    return found


ARROWS = arrows()


def test_every_room_is_in_the_table():
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True)
    names = listed.stdout.split() if listed.returncode == 0 else [name for name, _ in sources()]
    assert len(names) > 200 and [name for name in names if "/" in name and room_of(name) is None] == []
    packages = {path.parent.relative_to(ROOT).as_posix() for path in ROOT.glob("nanolm/*/__init__.py")}
    packages |= {path.parent.relative_to(ROOT).as_posix() for path in ROOT.glob("grading/*/__init__.py")}
    assert packages - set(ROOMS) == set()


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_what_the_table_lets_it(room):
    if ROOMS[room] == {ALL}:
        return
    found = {target: file for (source, target), file in ARROWS.items() if source == room}
    assert {target: file for target, file in found.items() if target not in ROOMS[room]} == {}


def test_the_table_allows_nothing_that_is_not_needed():
    used = {room: {target for source, target in ARROWS if source == room} for room in ROOMS}
    unused = {room: allowed - used[room] for room, allowed in ROOMS.items() if allowed != {ALL}}
    assert {room: left for room, left in unused.items() if left} == {}


def test_only_the_week_imports_nbgrader():
    rooms = {room_of(name) for name, tree in sources() if any(d.split(".")[0] == "nbgrader" for d in imported(tree))}
    assert rooms == {"grading/week", "grading/tests"}


def test_no_module_is_imported_in_a_circle():
    """Imports at the top of a module; one inside a function runs later."""
    graph = {}
    for name, tree in sources():
        top = ast.Module([node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))], [])
        graph[name] = {place for dotted in imported(top) if (place := place_of(dotted)) and place.endswith(".py")}
    done, path = set(), []

    def visit(name):
        assert name not in path, " -> ".join([*path[path.index(name) :], name])
        if name in done:
            return
        path.append(name)
        for target in graph.get(name, ()):
            visit(target)
        done.add(path.pop())

    for name in graph:
        visit(name)


def test_every_room_says_what_it_is():
    for room in ROOMS:
        file = ROOT / room / "__init__.py"
        if file.is_file():
            assert ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))), room


NAMED = [room for room in ROOMS if room.count("/") == 1 and room not in ("grading/tests", "nanolm/classroom")]
NAMED += [f"grading/week/{room}" for room in ("autograde", "collect", "exports", "release", "report")]


@pytest.mark.parametrize("room", NAMED)
def test_a_room_names_its_files_and_no_other(room):
    said = ast.get_docstring(ast.parse((ROOT / room / "__init__.py").read_text(encoding="utf-8")))
    there = {path.name for path in (ROOT / room).glob("*.py")} - {"__init__.py"}
    named = set(re.findall(r"(?<![\w/])\w+\.py\b", said))
    assert named - there - {"nbgrader_config.py"} == set() and there - named == set()
