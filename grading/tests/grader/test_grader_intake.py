"""What the grader takes in of a submission, and the sentence for what it does not."""

import os

import pytest

from grading.grader.student_files import take_in
from nanolm.impl import CONTRACT
from nanolm.source import FILE_LIMIT, FILES_LIMIT

CODE = "import torch\n\nx = 1\n"


@pytest.fixture
def submission(tmp_path):
    """Write files into a new submission and take it in."""

    def of(files, prepare=lambda folder: None):
        folder = tmp_path / "student"
        folder.mkdir()
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        prepare(folder)
        return take_in(folder)

    return of


def test_the_weeks_files_and_the_python_files_beside_them_are_taken_and_nothing_else(submission):
    helpers = {"helpers.py": CODE, "parts/__init__.py": "", "parts/norm.py": CODE}
    others = {"notes.txt": "x", "week06.ipynb": "{", ".hidden.py": CODE, "__pycache__/a.py": CODE, "a/b/c/d.py": CODE}
    intake = submission({"modules.py": CODE, **helpers, **others})
    assert intake.files == {"modules.py": CODE, **helpers} and not intake.refused and not intake.notes
    assert intake.why_missing("rope") == "rope.py was not handed in."


@pytest.mark.parametrize("folder", ["exercises_en", "my work (2)", "Übung", "week06/exercises_en", "a/b/c"])
def test_files_in_one_folder_are_taken_up_to_three_deep(submission, folder):
    intake = submission({f"{folder}/rope.py": CODE, "read.me": "x"})
    assert intake.texts == {"rope": CODE} and intake.place == tuple(folder.split("/"))


def test_of_many_files_the_weeks_and_the_nearest_are_taken(submission):
    files = {"modules.py": CODE, "rope.py": CODE, **{f"part{n:02}.py": CODE for n in range(40)}}
    intake = submission({**files, "deeper/far.py": CODE})
    assert len(intake.files) == FILES_LIMIT and set(intake.texts) == {"modules", "rope"}
    assert "deeper/far.py" not in intake.beside and "without part28.py and 12 more" in intake.notes[0]


def test_what_is_too_large_together_is_not_taken(submission):
    large = "#" * (FILE_LIMIT - 1) + "\n"
    intake = submission({"modules.py": CODE, **{f"part{n}.py": large for n in range(6)}})
    assert len(intake.beside) == 5 and "without part5.py" in intake.notes[0]


def test_a_helper_that_is_not_taken_has_its_sentence(submission, tmp_path):
    def prepare(folder):
        (folder / "linked.py").symlink_to("/etc/passwd")

    intake = submission({"modules.py": CODE, "latin.py": b"# \xe9"}, prepare)
    assert intake.beside == {} and intake.notes == (
        "latin.py is not UTF-8 text (byte 2): save it as UTF-8.",
        "linked.py is a link: hand in the file itself.",
    )


def test_of_several_folders_exercises_en_is_taken_or_none(submission):
    intake = submission({"exercises_en/rope.py": CODE, "backup/rope.py": "old"})
    assert intake.texts == {"rope": CODE} and "exercises_en was graded" in intake.notes[0]


def test_several_equal_folders_are_a_question_to_the_student(submission):
    intake = submission({"a/rope.py": CODE, "b/rope.py": CODE})
    assert intake.texts == {} and intake.notes == ("several folders hold the week's files: hand in one.",)


def test_a_notebook_of_any_kind_does_not_stand_in_the_way_of_the_files(submission):
    intake = submission({"rope.py": CODE, "week06.ipynb": "{", "week06 (1).ipynb": b"\xff\0"})
    assert intake.texts == {"rope": CODE} and not intake.refused and not intake.notes


def test_an_empty_submission_says_what_to_hand_in(submission):
    intake = submission({"week06 (1).ipynb": "{}"})
    assert intake.texts == {} and "none of the week's files was found" in intake.notes[0]


@pytest.mark.parametrize(
    "content",
    [
        CODE.encode("utf-8-sig"),
        CODE.encode("utf-16"),
        b"\xfe\xff" + CODE.encode("utf-16-be"),
        CODE.replace("\n", "\r\n").encode(),
        CODE.replace("\n", "\r").encode(),
        CODE.replace("\n", "\r\n").encode("utf-16"),
        CODE.encode("utf-32"),
    ],
    ids=["utf-8 with mark", "utf-16", "utf-16 big endian", "windows ends", "old mac ends", "utf-16 windows", "utf-32"],
)
def test_encodings_and_line_ends_give_the_same_text(submission, content):
    assert submission({"modules.py": content}).texts == {"modules": CODE}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("# é".encode("latin-1"), "modules.py is not UTF-8 text (byte 2): save it as UTF-8."),
        (b"x = 1\ny = \0\n", "modules.py, line 2, holds a NUL byte: save it again as text."),
        (b"\xff\xfex", "modules.py is not UTF-16 text (byte 2): save it as UTF-8."),
        (b"# coding: rot13\n", "modules.py declares the encoding rot13, which is not read here: save it as UTF-8."),
        (b"# coding: idna\n", "modules.py declares the encoding idna, which is not read here: save it as UTF-8."),
        (b"# coding: cp9999\n", "modules.py declares the encoding cp9999, which is not read here: save it as UTF-8."),
        (b"# coding: gbk\n# \xff", "modules.py is not GBK text (byte 16): save it as UTF-8."),
        (b"#" * (FILE_LIMIT + 1), "modules.py is larger than 200,000 bytes: hand in your code only."),
    ],
    ids=["latin-1", "nul", "half utf-16", "no text", "not linear", "unknown", "not as declared", "too large"],
)
def test_a_file_that_is_not_taken_has_its_sentence(submission, content, sentence):
    intake = submission({"modules.py": content, "rope.py": CODE})
    assert intake.refused == {"modules": sentence} and intake.texts == {"rope": CODE}


@pytest.mark.parametrize("encoding", ["latin-1", "utf-8", "cp1252", "iso-8859-15", "koi8-r", "gbk", "sjis", "big5"])
def test_a_declared_encoding_is_read_and_declared_anew(submission, encoding):
    letter = {"koi8-r": "\u0436", "gbk": "\u4e2d", "sjis": "\u4e2d", "big5": "\u4e2d"}.get(encoding, "\xe9")
    head, tail = "#!/usr/bin/env python\n# -*- coding: ", " -*-\nx = 1  # "
    intake = submission({"modules.py": f"{head}{encoding}{tail}{letter}\n".encode(encoding)})
    assert intake.texts == {"modules": f"{head}utf-8{tail}{letter}\n"}


def test_links_pipes_and_folders_are_refused(submission, tmp_path):
    (tmp_path / "secret.py").write_text("secret", encoding="utf-8")

    def prepare(folder):
        (folder / "modules.py").symlink_to(tmp_path / "secret.py")
        (folder / "rope.py").symlink_to("/dev/zero")
        os.mkfifo(folder / "attention.py")
        (folder / "model.py").mkdir()
        (folder / "budget.py").symlink_to("nowhere")

    intake = submission({"objectives.py": CODE}, prepare)
    assert intake.texts == {"objectives": CODE}
    assert intake.refused == {
        "modules": "modules.py is a link: hand in the file itself.",
        "rope": "rope.py is a link: hand in the file itself.",
        "attention": "attention.py is not a plain file: hand in the file itself.",
        "model": "model.py is not a plain file: hand in the file itself.",
        "budget": "budget.py is a link: hand in the file itself.",
    }


def test_a_submission_that_is_a_link_or_a_file_is_refused(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "rope.py").write_text(CODE, encoding="utf-8")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "file").write_text("x", encoding="utf-8")
    for name in ("link", "file"):
        intake = take_in(tmp_path / name)
        assert intake.texts == {} and set(intake.refused) == set(CONTRACT)
        assert intake.why_missing("rope") == f"{name} is not a folder: hand in the week's files in one."


def test_a_linked_folder_inside_is_not_followed(submission, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "rope.py").write_text(CODE, encoding="utf-8")
    intake = submission({}, lambda folder: (folder / "exercises_en").symlink_to(tmp_path / "elsewhere"))
    assert intake.texts == {}
