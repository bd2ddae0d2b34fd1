"""The class on one page: `python -m grading report --course COURSE --out FILE`.

    facts.py      what the gradebook, the grader's results and the intake say of the class
    similar.py    which submissions share more code than chance explains, as pointers
    pictures.py   the page's pictures, as SVG
    page.py       the page, from the template page.html
    command.py    the command
"""
