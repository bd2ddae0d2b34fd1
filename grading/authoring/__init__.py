"""What is written once and what is generated from it: stubs, stored answers, notebooks, book, the week's notebook.

    marked.py         the marks in reference/, the one marked source
    stubs.py          exercises_en/ from reference/
    golden.py         the tests' stored answers
    notebooks.py      notebooks/*.ipynb from notebooks/source/*.py
    week_notebook.py  the graded notebook, from week/course_template/week06.py
    cells.py, points.py   what nbgrader's metadata says about its cells; what each part is worth
    book.py           pages and slides of all notebooks; mathml.py draws their formulas

It may import nanolm and tests/machinery. The other rooms of grading/ import it, and `python -m grading` calls it.
"""
