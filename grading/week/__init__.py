"""The instructor's week in nbgrader: course, release, collect, autograde, late policy, exports, report.

    course.py, course_template/   `python -m grading course FOLDER`: a working course folder, and what it is made from
    course_folder.py  such a folder as our commands see it
    release/          what students get
    collect/          from what a learning platform gives to submitted/STUDENT/week06/
    autograde/        nbgrader's autograde by the two-zone grader
    databases.py, times.py   the gradebook's databases, times with zones
    late_policy.py, bonus_policy.py   what lateness costs, how much of the bonus counts
    feedback_key.py, release_feedback.py   each page of feedback to its student, through nbgrader's exchange
    exports/          grades for other systems
    report/           the class on one page

Only this room imports nbgrader. It may import grader/, authoring/ and the bank's metadata; demo/ and
`python -m grading` call it.
"""
