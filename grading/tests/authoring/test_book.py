"""The book's pages and slides: complete without a network, pictures first."""

import re

from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from grading.__main__ import main
from grading.authoring import book

DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="
FROM_ELSEWHERE = re.compile(r"""(?:src|href)=["']?(?:https?:)?//|from ['"]https?:|@import url\(["']?https?:""")


def a_notebook():
    picture = new_output("display_data", {"image/png": DOT, "text/plain": "a picture"})
    return new_notebook(cells=[
        new_markdown_cell("# 01 A topic\n\nThe size is $\\sqrt{D}$, and\n\n$$x_i^2$$"),
        new_code_cell("draw_a_dot()", outputs=[picture]),
        new_markdown_cell("One remark.\n\n## Another heading"),
        new_code_cell("count = 3"),
        new_code_cell("draw_again()", outputs=[picture]),
    ])  # fmt: skip


def test_nothing_is_loaded_from_elsewhere():
    for text in book.pages(a_notebook()):
        assert not FROM_ELSEWHERE.findall(text)


def test_formulas_are_mathml():
    for text in book.pages(a_notebook()):
        assert "<msqrt>" in text and 'display="block"' in text
        assert "$" not in text[text.index("<main") : text.index("</main>")]


def test_the_page_shows_code_and_the_slides_show_pictures_without_it():
    page, slides = book.pages(a_notebook())
    assert page.count(DOT) == slides.count(DOT) == 2
    assert "draw_a_dot" in page and "draw_again" in page
    assert "draw_a_dot" not in slides and "draw_again" not in slides and "count" in slides


def test_a_slide_begins_at_every_heading_and_keeps_its_first_picture():
    notebook = a_notebook()
    book.make_slides(notebook)
    kinds = [cell.metadata.get("slideshow", {}).get("slide_type") for cell in notebook.cells]
    assert kinds == ["slide", "-", "-", "slide", "subslide", "subslide"]
    assert notebook.cells[2].source == "One remark.\n\n" and notebook.cells[3].source == "## Another heading"


def test_reveal_lies_beside_the_slides(tmp_path, monkeypatch):
    monkeypatch.setattr(book, "BOOK", tmp_path)
    assert book.copy_reveal()
    _, slides = book.pages(a_notebook())
    asked = re.findall(rf'(?:src|href)="({book.REVEAL}/[^"]+)"', slides)
    assert len(asked) >= 4 and all((tmp_path / name).is_file() for name in asked)
    for sheet in (tmp_path / book.REVEAL / "dist").rglob("white.css"):
        assert not FROM_ELSEWHERE.findall(sheet.read_text(encoding="utf-8"))


def test_a_missing_reveal_is_said_in_one_sentence(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(book, "BOOK", tmp_path)
    monkeypatch.setattr(book, "copy_reveal", lambda: False)
    assert main(["book"]) == 1
    assert "requirements-slides.txt" in capsys.readouterr().err
