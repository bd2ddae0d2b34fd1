"""The states that a test can end in besides those of the students' own runs. Light: nothing here needs torch."""


class GraderError(Exception):
    """The grader itself failed: never a student's zero."""


PASSED, FAILED, NOT_STARTED, WAITING, ADVICE = "passed", "failed", "not started", "waiting", "advice"
TIMED_OUT, OUT_OF_MEMORY, CRASHED, REFUSED = "timed out", "out of memory", "crashed", "refused"
NOT_SUBMITTED, GRADER_ERROR = "not submitted", "grader error"
