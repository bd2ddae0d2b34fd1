"""nbgrader's autograde of the week, by the two-zone grader.

    wiring.py       what the course's nbgrader_config.py sets
    converter.py    nbgrader's Autograde, of submissions made sound and graded beforehand
    generate.py     nbgrader's generate_assignment: a changed assignment keeps its release
    staging.py      a copy of a submission that holds only what is graded
    reading.py      the cells of whatever notebook was handed in
    answers.py      the released notebook with a student's answers in it
    grader.py       the two-zone grader on a class, in a process of its own
    preprocessors.py  stand where nbgrader executes the notebook: results into cells, bonus into the gradebook
    outputs.py      a result as cell outputs
    feedback.py     the feedback page
"""
