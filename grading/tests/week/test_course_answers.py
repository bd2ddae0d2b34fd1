"""Whatever became of the notebook, the answers are found, or it is said that they are not."""

import base64
import copy
import json
import os
import time

import nbformat
import pytest

pytest.importorskip("nbgrader")

from grading.authoring.cells import is_answer, is_check, nbgrader_of  # noqa: E402
from grading.authoring.week_notebook import TARGET  # noqa: E402
from grading.grader.untrusted import Unfit  # noqa: E402
from grading.grader.untrusted.files import keep_out  # noqa: E402
from grading.grader.untrusted.notebooks import read_notebook  # noqa: E402
from grading.week.autograde.answers import BREAK, rebuild  # noqa: E402
from grading.week.autograde.reading import read_submission  # noqa: E402
from grading.week.autograde.staging import stage  # noqa: E402

STUB = "YOUR ANSWER HERE"
ANSWERS = {"ffn-width": "It is 8D/3.", "kv-cache": "Keys and values.", "tying": "One matrix."}


@pytest.fixture(scope="module")
def released():
    """The released notebook: the source without the rubrics."""
    notebook = nbformat.read(TARGET, as_version=4)
    for cell in filter(is_answer, notebook.cells):
        cell.source = STUB
    return notebook


@pytest.fixture
def written(released):
    """What a student hands in who did nothing odd."""
    notebook = copy.deepcopy(released)
    for name, text in ANSWERS.items():
        cell_of(notebook, name).source = text
    return notebook


def position(notebook, name):
    return next(n for n, cell in enumerate(notebook.cells) if nbgrader_of(cell).get("grade_id") == name)


def cell_of(notebook, name):
    return notebook.cells[position(notebook, name)]


def own(text, kind="markdown", **metadata):
    cell = {"cell_type": kind, "source": text, "metadata": metadata}
    return nbformat.from_dict(cell | ({"outputs": [], "execution_count": None} if kind == "code" else {}))


def hand_in(folder, notebook, name="week06.ipynb"):
    data = notebook if isinstance(notebook, bytes) else json.dumps(notebook).encode()
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


def graded(folder, released):
    """(answers that are not the stub, notes) of what was handed in."""
    found = read_submission(folder, "week06")
    notebook, about = rebuild(released, found.cells)
    same = [cell for cell in notebook.cells if not is_answer(cell)]
    assert same == [cell for cell in released.cells if not is_answer(cell)]
    assert [cell.metadata for cell in notebook.cells] == [cell.metadata for cell in released.cells]
    nbformat.validate(notebook)
    answers = {nbgrader_of(cell)["grade_id"]: cell.source for cell in notebook.cells if is_answer(cell)}
    return {name: text for name, text in answers.items() if text != STUB}, [*found.notes, *about]


def test_an_honest_notebook_gives_its_answers_and_no_note(written, released, tmp_path):
    hand_in(tmp_path, written)
    assert graded(tmp_path, released) == (ANSWERS, [])


def delete(notebook):
    del notebook.cells[position(notebook, "rope")], notebook.cells[position(notebook, "kv-cache")]


def double(notebook):
    twin = copy.deepcopy(cell_of(notebook, "tying"))
    twin.source = "Another text."
    notebook.cells += [copy.deepcopy(cell_of(notebook, "rope")), twin]


def copy_before(notebook):
    twin = copy.deepcopy(cell_of(notebook, "tying"))
    twin.source = STUB
    notebook.cells.insert(2, twin)


def split(notebook):
    at = position(notebook, "ffn-width")
    second = copy.deepcopy(notebook.cells[at])
    notebook.cells[at].source, second.source = "It is", "8D/3."
    notebook.cells.insert(at + 1, second)


def answer_below(notebook):
    at = position(notebook, "tying")
    notebook.cells[at].source = STUB
    notebook.cells.insert(at + 1, own(ANSWERS["tying"]))


def reorder(notebook):
    notebook.cells.reverse()


def retype(notebook):
    for name, kind in (("ffn-width", "code"), ("kv-cache", "raw"), ("rope", "markdown")):
        cell_of(notebook, name)["cell_type"] = kind


def edit(notebook):
    cell_of(notebook, "rope").metadata["nbgrader"]["points"] = 99
    cell_of(notebook, "block").source = "100.0"
    cell_of(notebook, "ffn-width").metadata["nbgrader"]["points"] = 40


def add_ids(notebook):
    metadata = {**nbgrader_of(cell_of(notebook, "rope")), "grade_id": "free-\x1b[2Jpoints"}
    notebook.cells.append(own("1000.0", "code", nbgrader=metadata))


def lose_metadata(notebook):
    for cell in notebook.cells:
        cell.metadata = {}


def lose_metadata_and_ids(notebook):
    for cell in notebook.cells:
        cell.metadata = {}
        cell.pop("id", None)


def nonsense(notebook):
    for cell, metadata in zip(notebook.cells, ({"nbgrader": []}, {"nbgrader": {"grade_id": {}}}, []), strict=False):
        cell["metadata"] = metadata
    notebook["cells"] = [None, 3, {"source": 5}, {"cell_type": [], "source": [1, None]}, *notebook["cells"]]


DAMAGES = {  # what was done to the notebook: (answers that are found another way than as they were, words of the notes)
    delete: ({"kv-cache": None}, ["missing and are back: rope", "the answer kv-cache is missing"]),
    double: ({}, ["more than once: rope", "the answer tying stands there more than once"]),
    copy_before: ({}, ["in another order"]),
    split: ({"ffn-width": "It is\n\n8D/3."}, ["the answer ffn-width was spread over 2 cells"]),
    answer_below: ({}, []),
    reorder: ({}, ["in another order"]),
    retype: ({}, ["not yours to change, put back: rope, ffn-width, kv-cache", "ffn-width was in a code cell"]),
    edit: ({}, ["not yours to change, put back: rope, block, ffn-width"]),
    add_ids: ({}, ["under an id that this week does not have, left out: free-\\x1b[2Jpoints"]),
    lose_metadata: ({}, ["the answer ffn-width had lost its id", "missing and are back: rmsnorm"]),
    lose_metadata_and_ids: ({}, ["the answer ffn-width had lost its id"]),
    nonsense: ({}, []),
}


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damaged_notebook_gives_its_answers_and_names_the_damage(damage, written, released, tmp_path):
    damage(written)
    hand_in(tmp_path, written)
    changed, words = DAMAGES[damage]
    answers, notes = graded(tmp_path, released)
    assert answers == {name: text for name, text in (ANSWERS | changed).items() if text is not None}
    said = " ".join(notes)
    assert [word for word in words if word not in said] == [] and said.isprintable()
    if not words:
        assert notes == []


def conflict(data):
    return b"<<<<<<< HEAD\n" + data + b"\n=======\n{}\n>>>>>>> theirs\n"


def conflict_inside(data):
    line = b'"It is 8D/3."'
    return data.replace(line, b"\n<<<<<<< HEAD\n" + line + b"\n=======\n\"no\"\n>>>>>>> theirs\n")


FILES = {  # what was done to the file: (whether the answers are found, words of the notes)
    "byte order mark": (lambda data: b"\xef\xbb\xbf" + data, True, ""),
    "UTF-16": (lambda data: data.decode().encode("utf-16"), True, ""),
    "conflict around": (conflict, True, "holds a merge conflict"),
    "conflict inside": (conflict_inside, True, "holds a merge conflict"),
    "conflict at the end": (lambda data: data + b"\n=======\n>>>>>>> theirs\n", True, "other text after its end"),
    "cut off": (lambda data: data[: data.index(b'"One matrix."')], False, "is damaged"),
    "empty": (lambda data: b"", False, "week06.ipynb is empty"),
    "no JSON": (lambda data: b"import torch\n", False, "is not a notebook"),
    "a list": (lambda data: b"[1, 2]", False, "is JSON, but no notebook"),
    "deep": (lambda data: b"[" * 200_000, False, "is nested more than 100 deep"),
    "large": (lambda data: data + b" " * 20_000_000, False, "is larger than 20,000,000 bytes"),
}


@pytest.mark.parametrize("kind", FILES)
def test_a_damaged_file_is_read_as_far_as_it_goes(kind, written, released, tmp_path):
    harm, found, words = FILES[kind]
    hand_in(tmp_path, harm(json.dumps(written).encode()))
    answers, notes = graded(tmp_path, released)
    if kind == "cut off":
        assert answers == {name: text for name, text in ANSWERS.items() if name != "tying"}
    else:
        assert answers == (ANSWERS if found else {})
    assert words in " ".join(notes) and bool(notes) == bool(words)


@pytest.mark.parametrize("name", ("week06 (1).ipynb", "Week06.IPYNB", "my solution.ipynb", "week06/week06.ipynb"))
def test_a_renamed_notebook_is_found(name, written, released, tmp_path):
    hand_in(tmp_path, written, name)
    answers, notes = graded(tmp_path, released)
    assert answers == ANSWERS and f"taken from {name}" in notes[0]


def test_a_broken_notebook_gives_way_to_a_sound_copy(written, released, tmp_path):
    hand_in(tmp_path, b"")
    hand_in(tmp_path, written, "week06-Copy1.ipynb")
    answers, notes = graded(tmp_path, released)
    assert answers == ANSWERS and len(notes) == 2


def test_no_notebook_at_all_is_said(released, tmp_path):
    answers, notes = graded(tmp_path, released)
    assert answers == {} and notes[0] == "week06.ipynb was not handed in."


def test_links_and_pipes_are_not_opened(written, released, tmp_path):
    hand_in(tmp_path, written, "elsewhere/real.ipynb")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "week06.ipynb").symlink_to(tmp_path / "elsewhere" / "real.ipynb")
    os.mkfifo(tmp_path / "work" / "week06-2.ipynb")
    answers, notes = graded(tmp_path / "work", released)
    assert answers == {} and "is a link" in notes[0] and "not a plain file" in notes[1]


def test_a_text_shows_as_it_was_written_and_does_nothing(written, released, tmp_path):
    text = "a <b, <script>x</script> [y](javascript:z) [r]: javascript:z \x1b[2J <!-- --> a < b \ud800"
    cell_of(written, "tying").source = text
    hand_in(tmp_path, written)
    shown = graded(tmp_path, released)[0]["tying"]
    assert shown.replace(BREAK, "") == text.replace("\x1b", "").replace("\ud800", "?")
    assert "<script" not in shown and "](java" not in shown and "]:" not in shown and "<!" not in shown
    assert "a < b" in shown


def test_pictures_are_kept_where_they_are_pictures(written, released, tmp_path):
    png = base64.b64encode(b"\x89PNG and more").decode()
    cell = cell_of(written, "tying")
    cell.source = "![one](attachment:a.png) ![two](attachment:b.png) ![three](attachment:c.svg)"
    cell["attachments"] = {
        "a.png": {"image/png": png}, "b.png": {"image/png": base64.b64encode(b"<svg>").decode()},
        "c.svg": {"image/svg+xml": "<svg onload=x>"},
    }  # fmt: skip
    hand_in(tmp_path, written)
    notebook, notes = rebuild(released, read_submission(tmp_path, "week06").cells)
    answer = cell_of(notebook, "tying")
    assert answer.attachments == {"a.png": {"image/png": png}}
    assert "](attachment:a.png)" in answer.source and "attachment:b" not in answer.source
    assert any("a picture that could not be taken" in note for note in notes)


def test_a_long_answer_is_cut_with_a_note(written, released, tmp_path):
    cell_of(written, "tying").source = "x" * 100_000
    hand_in(tmp_path, written)
    answers, notes = graded(tmp_path, released)
    assert len(answers["tying"]) == 20_000
    assert notes == ["the answer tying is long: its first 20,000 letters were taken."]


def test_every_check_has_a_note_when_it_is_gone(written, released, tmp_path):
    written.cells = [cell for cell in written.cells if not is_check(cell)]
    hand_in(tmp_path, written)
    answers, notes = graded(tmp_path, released)
    assert answers == ANSWERS and "rmsnorm, swiglu, rope, attention, block" in notes[0]


def in_format_3(notebook):
    """The same notebook as IPython 2 saved it."""
    cells = []
    for cell in notebook.cells:
        own = {"cell_type": cell.cell_type, "metadata": cell.metadata}
        first, _, rest = cell.source.partition("\n")
        if cell.cell_type == "code":
            cells.append(own | {"input": cell.source, "language": "python", "outputs": []})
        elif first.startswith("## ") and not rest:
            cells.append(own | {"cell_type": "heading", "level": 2, "source": first[3:]})
        else:
            cells.append(own | {"source": cell.source})
    return {"metadata": {}, "nbformat": 3, "nbformat_minor": 0, "worksheets": [{"cells": cells, "metadata": {}}]}


def test_a_notebook_of_an_old_format_gives_its_answers(written, released, tmp_path):
    hand_in(tmp_path, in_format_3(written))
    assert graded(tmp_path, released)[0] == ANSWERS


def theirs_only(data):
    line = b'"It is 8D/3."'
    return data.replace(line, b"\n<<<<<<< HEAD\n\"cut\n||||||| base\n\"old\"\n=======\n" + line + b"\n>>>>>>> theirs\n")


SURE = {  # what was done to the notebook's bytes: whether an answer that is not found was surely not written
    "as it was": (lambda data: data, True),
    "cut off": (lambda data: data[: data.index(b'"One matrix."')], False),
    "two versions": (conflict_inside, False),
    "the other version": (theirs_only, False),
    "conflict at the end": (lambda data: data + b"\n<<<<<<< HEAD\n=======\n{}\n>>>>>>> theirs\n", False),
    "other bytes": (lambda data: data.replace(b"One matrix.", b"One matrix \xe9."), False),
    "no cells": (lambda data: b'{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}', False),
    "thousands of cells": (lambda data: data.replace(b'"cells": [', b'"cells": [' + b"{}," * 2_500), False),
    "empty": (lambda data: b"", False),
    "text": (lambda data: b"My answer: 8D/3", False),
}


@pytest.mark.parametrize("kind", SURE)
def test_an_answer_that_could_not_be_read_is_no_untouched_one(kind, written, released, tmp_path):
    harm, whole = SURE[kind]
    hand_in(tmp_path / "ada/week06", harm(json.dumps(written).encode()))
    staged = stage("ada", tmp_path / "ada/week06", tmp_path / "room", "week06", released)
    assert bool(staged.unsure) is not whole
    if not whole:
        assert staged.unsure >= set(ANSWERS) and (staged.notes or kind == "no cells")


def test_a_cell_that_is_gone_and_a_second_notebook_are_for_a_person_to_look_at(written, released, tmp_path):
    delete(written)
    hand_in(tmp_path / "ada/week06", written)
    staged = stage("ada", tmp_path / "ada/week06", tmp_path / "room", "week06", released)
    assert staged.unsure == {"kv-cache"}
    hand_in(tmp_path / "ada/week06", written, "my answers.ipynb")
    assert read_submission(tmp_path / "ada/week06", "week06").whole is False


def test_links_in_a_submission_are_not_followed_and_what_they_lead_to_is_not_said(written, released, tmp_path):
    secret = "0123456789abcdef" * 4
    (tmp_path / "secret.txt").write_text(secret, encoding="utf-8")
    folder = tmp_path / "ada/week06"
    hand_in(folder, written)
    for number, name in enumerate(("timestamp.txt", "week06.ipynb", "exercises_en/modules.py", "rope.py")):
        (folder / name).unlink(missing_ok=True)
        (folder / name).parent.mkdir(exist_ok=True)
        if number % 2:
            (folder / name).hardlink_to(tmp_path / "secret.txt")
        else:
            (folder / name).symlink_to(tmp_path / "secret.txt")
    keep_out(tmp_path / "secret.txt")
    staged = stage("ada", folder, tmp_path / "room", "week06", released)
    assert any("timestamp.txt is a link" in note for note in staged.notes)
    assert secret not in " ".join(staged.notes)
    copies = [path for path in (tmp_path / "room").rglob("*") if path.is_file()]
    assert copies and not [path for path in copies if secret[:16] in path.read_text(encoding="utf-8")]


def test_a_link_to_another_ones_submission_is_not_followed(written, released, tmp_path):
    hand_in(tmp_path / "ada/week06", written)
    (tmp_path / "bob").symlink_to(tmp_path / "ada")
    staged = stage("bob", tmp_path / "bob/week06", tmp_path / "room", "week06", released)
    assert "One matrix." not in (staged.folder / "week06.ipynb").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "text", [b"<<<<<<<\n" * 2_000_000, b'{"cells": [' + b"<<<<<<< a\n=======\n" * 500_000, b'["' + b'\\"' * 9_000_000]
)
def test_a_notebook_made_to_be_slow_is_read_in_one_pass(text, tmp_path):
    before = time.process_time()
    with pytest.raises(Unfit):
        read_notebook(text)
    assert time.process_time() - before < 60, "what takes a second here would take days if it grew with the square"
