"""The bank of mistakes and right programs holds together: ids, patches, named tests, hints, reasons.

Whether each named test really catches its mistake is for the kill matrix to prove; here nothing
is run, so that this file takes seconds.
"""

import ast
import json
import re
import runpy

import pytest

from grading.authoring.marked import exercises, split
from grading.paths import REFERENCE, ROOT
from grading.proof import bank
from nanolm.impl import CONTRACT

MISTAKES, VARIANTS, METADATA = bank.load_mistakes(), bank.load_variants(), bank.load_metadata()
SOURCES = {path.name: path.read_text(encoding="utf-8") for path in sorted(REFERENCE.glob("*.py"))}
TESTS = ROOT / "tests"
WEEK = runpy.run_path(str(TESTS / "machinery" / "parts.py"))
NOTEBOOKS = ROOT / "notebooks"
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
HINTS = 3
TELLING = 16  # letters from which on a line of code gives something away
ID = re.compile(r"[a-zA-Z0-9]+(-[a-zA-Z0-9]+)+|[a-z]+")


def named_tests():
    return {
        node.name
        for path in TESTS.glob("test_*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def solution_lines():
    """Every telling line of the solutions and of the patches, squeezed: without comments and spaces."""
    lines = []
    for name in CONTRACT:
        for exercise in exercises(split(SOURCES[f"{name}.py"], name)):
            lines += exercise.solution
    for mistake in MISTAKES.values():
        lines += [line for edit in mistake.edits for line in edit.write.splitlines()]
    squeezed = {re.sub(r"\s+", "", line.split("#")[0]) for line in lines}
    return {line for line in squeezed if len(line) >= TELLING}


def sections_of(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    texts = ("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    return [section for text in texts for section in HEADING.findall(text)]


def texts(entry):
    return [entry["symptom"], entry["cause"], *entry["hints"], entry["notebook"]]


def test_the_bank_and_the_metadata_have_the_same_ids():
    assert sorted(MISTAKES) == sorted(METADATA)
    assert all(ID.fullmatch(name) for name in (*MISTAKES, *VARIANTS))


def test_every_mistake_belongs_to_the_part_of_its_file_and_of_its_test():
    for name, mistake in MISTAKES.items():
        assert mistake.part in WEEK["PARTS"], name
        assert METADATA[name]["part"] == mistake.part, name
        assert WEEK["part_of_test"](METADATA[name]["test"]) == mistake.part, name


def test_every_part_of_the_week_has_mistakes():
    assert {mistake.part for mistake in MISTAKES.values()} == set(WEEK["PARTS"])


def test_every_named_test_exists():
    missing = {entry["test"] for entry in METADATA.values()} - named_tests()
    assert not missing, f"tests/machinery/hints.toml names tests that are not there: {sorted(missing)}"


def test_every_entry_says_all_that_a_student_needs():
    for name, entry in METADATA.items():
        assert len(entry["hints"]) == HINTS, name
        assert all(text.strip() and text.isascii() for text in texts(entry)), name
        assert entry["cause"].endswith("?"), f"{name}: the cause is a question"
        unknown = set(entry) - {"id", "part", "test", "same_as", "symptom", "cause", "hints", "notebook"}
        assert not unknown, f"{name} has {sorted(unknown)}"


def test_every_mistake_is_explained_in_a_section_that_is_there():
    sections = {f"{path.name}#{section}" for path in NOTEBOOKS.glob("*.ipynb") for section in sections_of(path)}
    missing = {name: entry["notebook"] for name, entry in METADATA.items() if entry["notebook"] not in sections}
    assert not missing


def test_no_text_for_students_holds_a_line_of_a_solution():
    lines = solution_lines()
    assert len(lines) > 100
    for name, entry in METADATA.items():
        said = re.sub(r"\s+", "", " ".join(texts(entry)))
        told = [line for line in lines if line in said]
        assert not told, f"{name} gives away {told}"


def test_what_is_the_same_is_there():
    for name, entry in METADATA.items():
        same = entry.get("same_as")
        assert same is None or same in METADATA and same != name, f"{name}: {same} is no other mistake"
        assert same is None or "same_as" not in METADATA[same], f"{name}: name the first of those that are the same"


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_every_mistake_applies_and_can_be_read(mistake):
    changed = bank.apply(SOURCES, [mistake])
    assert changed and all(changed[file] != SOURCES[file] for file in changed)


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
def test_every_variant_applies_and_keeps_the_public_names(variant):
    changed = bank.apply(SOURCES, [variant])
    assert changed and variant.only in ("all", "core")
    for file, text in changed.items():
        names = {node.name for node in ast.parse(text).body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
        assert set(CONTRACT[file.removesuffix(".py")]) <= names


def test_no_two_mistakes_are_the_same_program():
    programs = {}
    for name, mistake in MISTAKES.items():
        trees = {file: ast.dump(ast.parse(text)) for file, text in bank.apply(SOURCES, [mistake]).items()}
        twin = programs.setdefault(tuple(sorted(trees.items())), name)
        assert twin == name, f"{name} is the same program as {twin}"


def test_everything_outside_has_its_reason():
    for folder, inside in ((bank.MISTAKES, MISTAKES), (bank.VARIANTS, VARIANTS)):
        outside = bank.load_outside(folder)
        assert outside and not set(outside) & set(inside)
        assert all(reason.endswith(".") and reason.isascii() for reason in outside.values())


def test_two_mistakes_in_different_places_make_one_program(tmp_path):
    pair = [MISTAKES["rmsnorm-centers"], MISTAKES["swiglu-gate-up-swapped"]]
    assert bank.materialise(REFERENCE, pair, tmp_path) == ["modules.py"]
    alone = [bank.apply(SOURCES, [mistake])["modules.py"] for mistake in pair]
    both = (tmp_path / "modules.py").read_text(encoding="utf-8")
    assert both not in (*alone, SOURCES["modules.py"])
    assert (tmp_path / "rope.py").read_text(encoding="utf-8") == SOURCES["rope.py"]


def test_two_mistakes_in_one_place_overlap(tmp_path):
    pair = [MISTAKES["rmsnorm-eps-outside-the-root"], MISTAKES["rmsnorm-missing-gamma"]]
    with pytest.raises(bank.OverlapError, match="change the same lines of modules.py"):
        bank.materialise(REFERENCE, pair, tmp_path)
    with pytest.raises(bank.OverlapError):
        bank.materialise(REFERENCE, [VARIANTS["rms-cast-before-gain"], pair[0]], tmp_path)
    assert not list(tmp_path.iterdir()), "what is refused leaves nothing behind"


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        (bank.Patch("modules.py", "not there\n", ""), "stands there 0 times, not once"),
        (bank.Patch("modules.py", "import torch\n", "import torch, (\n"), "unreadable: line"),
        (bank.Patch("nowhere.py", "import torch\n", ""), "there is no nowhere.py"),
        (bank.Replacement("modules.py", "RMSNorm.backward", "pass"), "there is no RMSNorm.backward to replace"),
    ],
)
def test_what_does_not_apply_is_refused_with_one_sentence(edit, why):
    with pytest.raises(bank.PatchError) as refused:
        bank.apply(SOURCES, [bank.Mistake("some-mistake", "rmsnorm", (edit,), "some-mistake")])
    assert "some-mistake" in str(refused.value) and why in str(refused.value) and "\n" not in str(refused.value)


def test_a_text_that_stands_there_twice_is_refused():
    edit = bank.Patch("modules.py", "super().__init__()\n", "pass\n")
    with pytest.raises(bank.PatchError, match="stands there 2 times, not once"):
        bank.apply(SOURCES, [bank.Mistake("some-mistake", "rmsnorm", (edit,), "some-mistake")])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[[mistake]]\nid = ", "part.toml is no TOML"),
        ('[[mistake]]\nfile = "rope.py"', "an entry in part.toml has no id"),
        ('[[mistake]]\nid = "a"\nfile = "rope.py"\nfind = "x"', "a in part.toml has no write"),
        ('[[mistake]]\nid = "a"\nfile = "r"\nfind = "x"\nwrite = "y"\n' * 2, "a stands twice in the bank"),
    ],
)
def test_a_broken_file_is_refused_with_one_sentence(text, why, tmp_path):
    (tmp_path / "part.toml").write_text(text, encoding="utf-8")
    with pytest.raises(bank.PatchError, match=why):
        bank.load_mistakes(tmp_path)


def test_a_combination_of_something_unknown_is_refused(tmp_path):
    (tmp_path / "whole.toml").write_text('[[variant]]\nid = "a"\ntitle = "b"\nof = ["c"]', encoding="utf-8")
    with pytest.raises(bank.PatchError, match="a in whole.toml combines c, which is no variant"):
        bank.load_variants(tmp_path)
