"""The file by which nbgrader's exchange keeps one student's feedback from another.

`nbgrader submit` puts a random text beside a submission and beside the student's own copy of it. Feedback is handed out
under a name that is made of that text, in a folder that nobody can list: who knows the text finds the page. So the
text goes along from the exchange to submitted/, autograded/ and feedback/.
"""

import re

from grading.grader.untrusted import Unfit
from grading.grader.untrusted.files import read_file

KEY = "submission_secret.txt"
KEY_LIMIT = 2_000  # bytes
SOUND = re.compile(rb"[!-~]{32,1000}")  # nbgrader's own has 128 letters; what is shorter could be guessed


def sound(data):
    """Whether these bytes can be a key."""
    return SOUND.fullmatch(data.strip()) is not None


def key_in(folder):
    """The key in a submission's folder, as bytes; None where there is none that can be one."""
    try:
        data = read_file(folder / KEY, KEY_LIMIT)
    except (FileNotFoundError, Unfit):
        return None
    return data.strip() if sound(data) else None
