"""A worker that is lost, as the tests see it."""

from nanolm.errors import StudentError


class WorkerLost(StudentError):
    """A worker that gave no proper answer: it hung, died or broke the agreement. `state` is the test's.

    A StudentError, so that the tests and their judge see code that failed, as they would in process.
    """

    def __init__(self, state, sentence):
        super().__init__(state, sentence, "")
        self.state = state
