"""From what a learning platform gives to submitted/STUDENT/week06/: every student's files under fixed names.

    command.py   `python -m grading collect`              plugins.py   the same under nbgrader's own commands
    intake.py    a source in, one attempt for each student out, and a row for each problem
    names.py     whose a file is, as each platform writes it; which of the week's files it is
    items.py     what lies in a folder or an archive, however deep
    attempt.py   which of a student's things are the week's files
    roster.py    who is in the course                     owners.py    whose a folder of the exchange is
    store.py     submitted/STUDENT/week06/, written whole or not at all
    problems.py  the intake's one table
"""

ASSIGNMENT = "week06"
LOST, OWNERLESS = "no", "no owner"  # in the table's column "collected", of what is not; anybody's, where it is no one's
CODE = "exercises_en"  # the folder of the code files in a submission
