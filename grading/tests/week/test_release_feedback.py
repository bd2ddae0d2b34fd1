"""`nbgrader release_feedback week06`: each page to the one student whom it is for, whatever lies beside it."""

import hashlib
import os

import pytest

pytest.importorskip("nbgrader")

from courses import CONFIG, below, copy_of, nbgrader, tree, write_tree

from grading.paths import ROOT

PLUGINS = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
c.ExchangeFactory.release_feedback = "grading.week.release_feedback.WeekReleaseFeedback"
c.Exchange.root = "exchange"
"""
ADAS, BOBS = "a" * 128, "0f" * 64


def page_of(name, key):
    """What generate_feedback leaves for a student; `key` is bytes or None."""
    files = {"week06.html": f"<p>{name}</p>".encode(), "timestamp.txt": b"2026-01-10T10:00:00+00:00\n"}
    return below(f"feedback/{name}/week06", files | ({} if key is None else {"submission_secret.txt": key}))


@pytest.fixture
def course(small_course, tmp_path):
    """A course with two pages of feedback, each with its student's key."""
    course = copy_of(small_course, tmp_path / "course")
    (course / "nbgrader_config.py").write_text(CONFIG + PLUGINS, encoding="utf-8")
    (course / "exchange").mkdir()
    (course / "exchange").chmod(0o1777)
    return write_tree(course, page_of("ada", ADAS.encode()) | page_of("bob", BOBS.encode()))


def release(course, *more):
    code, said = nbgrader(course, "release_feedback", "week06", *more)
    assert "Traceback" not in said, said
    return code, said, tree(course / "exchange" / "course" / "feedback")


def name_for(key, notebook="week06"):
    """Where `nbgrader fetch_feedback` looks, as nbgrader's documentation of the exchange has it."""
    return f"{hashlib.md5(f'{key}{notebook}'.encode()).hexdigest()}.html"


def test_each_page_goes_where_its_student_looks_and_all_may_read_it_who_know_where(course):
    before = os.umask(0o077)
    try:
        code, _, found = release(course)
    finally:
        os.umask(before)
    assert code == 0 and found == {name_for(ADAS): b"<p>ada</p>", name_for(BOBS): b"<p>bob</p>"}
    folder = course / "exchange" / "course" / "feedback"
    assert folder.stat().st_mode & 0o777 == 0o711
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o644}


@pytest.mark.parametrize("key", [None, b"", b"short", b"\xff\xfe" * 64, b"a" * 5_000])
def test_one_without_a_sound_key_is_named_and_keeps_nobody_from_the_others_pages(course, key):
    write_tree(course, page_of("carl", key))
    code, said, found = release(course)
    assert code == 1 and "carl did not hand in through the exchange" in said and "1 of 3 pages" in said
    assert set(found) == {name_for(ADAS), name_for(BOBS)}


def test_a_link_in_the_place_of_a_key_is_not_followed(course, tmp_path):
    (tmp_path / "somebodys.txt").write_text("b" * 128, encoding="utf-8")
    write_tree(course, page_of("carl", None))
    (course / "feedback/carl/week06/submission_secret.txt").symlink_to(tmp_path / "somebodys.txt")
    code, said, found = release(course)
    assert code == 1 and "carl" in said and name_for("b" * 128) not in found


def test_two_students_with_one_key_get_no_page_of_each_other(course):
    write_tree(course, page_of("mallory", BOBS.encode()))
    code, said, found = release(course)
    assert code == 1 and said.count("have one and the same key") == 2
    assert set(found) == {name_for(ADAS)}


def test_a_missing_time_or_a_page_of_another_assignment_is_no_matter(course):
    (course / "feedback/ada/week06/timestamp.txt").unlink()
    write_tree(course, below("feedback/ada/week05", {"week05.html": b"old"}))
    code, _, found = release(course)
    assert code == 0 and b"old" not in found.values() and len(found) == 2


def test_only_those_who_are_asked_for_get_a_page_and_a_later_page_replaces_it(course):
    code, _, found = release(course, "--student=ada")
    assert code == 0 and set(found) == {name_for(ADAS)}
    (course / "feedback/ada/week06/week06.html").write_bytes(b"<p>better</p>")
    code, _, found = release(course, "--student=ada")
    assert code == 0 and found == {name_for(ADAS): b"<p>better</p>"}


def test_a_renamed_notebook_has_its_page_under_that_name(course):
    inbound = "exchange/course/inbound/bob+week06+2026-01-10 10:00:00 UTC+x"
    write_tree(course, below(inbound, {"mine.ipynb": b"{}", "submission_secret.txt": BOBS.encode()}))
    code, _, found = release(course)
    assert code == 0 and set(found) == {name_for(ADAS), name_for(BOBS, "mine")}


def test_without_any_feedback_a_sentence_says_what_comes_first(small_course, tmp_path):
    course = copy_of(small_course, tmp_path / "empty")
    (course / "nbgrader_config.py").write_text(CONFIG + PLUGINS, encoding="utf-8")
    (course / "exchange").mkdir(mode=0o777)
    (course / "exchange").chmod(0o1777)
    code, said, _ = release(course)
    assert code == 1 and "nbgrader generate_feedback week06  first" in said
