"""What nbgrader's metadata says about a cell of the week's notebook."""

QUESTION = "question-"


def nbgrader_of(cell):
    """nbgrader's metadata of a cell, empty where it has none."""
    return cell.metadata.get("nbgrader", {})


def is_answer(cell):
    """Whether students write here."""
    return nbgrader_of(cell).get("solution", False)


def is_check(cell):
    """Whether this is the self-check of a part, which the grader's points go into."""
    return nbgrader_of(cell).get("grade", False) and not is_answer(cell)


def question_id(answer):
    """The grade id of the question above an answer."""
    return f"{QUESTION}{answer}"


def answer_of(cell):
    """The grade id of the answer below a question; None for any other cell."""
    grade_id = nbgrader_of(cell).get("grade_id", "")
    return grade_id.removeprefix(QUESTION) if grade_id.startswith(QUESTION) else None
