"""What can go wrong while grading, each with one sentence."""

from nanolm.subject import StudentError


class GraderError(Exception):
    """The grader itself failed: never a student's zero."""


class WorkerLost(StudentError):
    """A worker that gave no proper answer: it hung, died or broke the agreement. `state` is the test's.

    A StudentError, so that the tests and their judge see code that failed, as they would in process.
    """

    def __init__(self, state, sentence):
        super().__init__(state, sentence, "")
        self.state = state


PASSED, FAILED, NOT_STARTED, WAITING, ADVICE = "passed", "failed", "not started", "waiting", "advice"
TIMED_OUT, OUT_OF_MEMORY, CRASHED, REFUSED = "timed out", "out of memory", "crashed", "refused"
NOT_SUBMITTED, GRADER_ERROR = "not submitted", "grader error"
