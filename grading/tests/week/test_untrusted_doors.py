"""The rooms that meet what students hand in read it through grading/grader/untrusted/ and through no other door."""

import ast

import pytest

from grading.paths import ROOT

ROOMS = ("grading/week/collect", "grading/week/autograde", "grading/grader/student_files.py", "grading/week/times.py")
DOORS = {
    "open", "fdopen", "read_text", "read_bytes", "ZipFile", "loads", "load", "raw_decode", "reader", "DictReader",
    "read", "reads", "decode", "literal_eval", "copyfile", "copy", "copy2", "copytree", "unpack_archive",
}  # fmt: skip
OURS = {  # file: calls in it that open what is ours, or what a door has given already
    "week/collect/items.py": ["open", "read"],  # the platform's own .zip; an Item, by untrusted.archives
    "week/collect/attempt.py": ["read", "read", "read"],  # Items
    "week/collect/intake.py": ["decode", "read"],  # timestamp.txt, an Item
    "week/collect/store.py": ["open", "open"],  # the lock; what is written
    "week/autograde/converter.py": ["loads", "read", "read_text", "read_text"],  # the released and the graded notebook
    "week/autograde/generate.py": ["copytree", "read"],  # the release, the source
    "week/autograde/grader.py": ["load", "loads", "open"],  # between our two processes
    "week/autograde/answers.py": ["decode"],  # of a text that was read already
    "week/times.py": ["decode"],  # timestamp.txt, by untrusted.files
}


def calls(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    named = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    names = (func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "") for func in named)
    return sorted(name for name in names if name in DOORS)


def files():
    places = [ROOT / room for room in ROOMS]
    return [path for place in places for path in (sorted(place.rglob("*.py")) if place.is_dir() else [place])]


@pytest.mark.parametrize("path", files(), ids=lambda path: path.relative_to(ROOT / "grading").as_posix())
def test_student_bytes_come_through_one_door(path):
    assert calls(path) == OURS.get(path.relative_to(ROOT / "grading").as_posix(), [])


def test_the_rule_sees_a_new_door(tmp_path):
    (tmp_path / "new.py").write_text("import zipfile\ndata = zipfile.ZipFile(path).read('x')\n", encoding="utf-8")
    assert calls(tmp_path / "new.py") == ["ZipFile", "read"]
