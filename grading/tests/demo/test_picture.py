"""README's picture of the class page can be made again."""

import struct

import pytest

from grading import preflight
from grading.__main__ import main
from grading.demo import picture


def size(path):
    """Width and height of a PNG, from its first chunk."""
    head = path.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    return struct.unpack(">II", head[16:])


def test_the_picture_in_readme_is_one_that_the_command_takes():
    assert size(picture.PICTURE) == picture.SIZE


def test_without_the_demos_page_one_sentence_says_what_makes_it(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(preflight, "chromium", lambda: "chromium")
    assert main(["picture", "--page", str(tmp_path / "none.html"), "--out", str(tmp_path / "x.png")]) == 1
    said = capsys.readouterr().err
    assert "make demo" in said and said.count("\n") == 1 and not (tmp_path / "x.png").exists()


@pytest.mark.parametrize(
    ("script", "says"), [("exit 0", "0: it said nothing"), ("echo no display >&2; exit 3", "3: no display")]
)
def test_a_browser_that_takes_none_leaves_the_old_picture(tmp_path, monkeypatch, capsys, script, says):
    page, out, browser = tmp_path / "page.html", tmp_path / "old.png", tmp_path / "browser"
    page.write_text("<p>class</p>", encoding="utf-8")
    out.write_bytes(b"old")
    browser.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    browser.chmod(0o755)
    monkeypatch.setattr(preflight, "chromium", lambda: str(browser))
    assert main(["picture", "--page", str(page), "--out", str(out)]) == 1
    assert f"Chromium ended with {says}" in capsys.readouterr().err and out.read_bytes() == b"old"


@pytest.mark.proof
def test_a_page_is_pictured_in_the_size_that_is_said(tmp_path, capsys):
    if preflight.chromium() is None:
        pytest.skip(preflight.NO_CHROMIUM)
    page = tmp_path / "page.html"
    page.write_text("<p>class</p>", encoding="utf-8")
    assert main(["picture", "--page", str(page), "--out", str(tmp_path / "new" / "page.png")]) == 0
    assert size(tmp_path / "new" / "page.png") == picture.SIZE
