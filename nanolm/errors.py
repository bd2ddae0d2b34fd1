"""What a question about an implementation may end in, instead of an answer."""


class NotStarted(Exception):
    """The code that was asked for is still a stub. `name` is the exercise, e.g. RMSNorm.forward."""

    def __init__(self, name, message):
        super().__init__(message or f"{name} is not started")
        self.name = name


class StudentError(Exception):
    """Student code raised. `kind` is the exception's type name; for the others see nanolm/asking/crash.py."""

    def __init__(self, kind, message, place="", line="", tensors="", axis=""):
        super().__init__(f"{kind}: {message}" + (f" ({place})" if place else ""))
        self.kind, self.message, self.place = kind, message, place
        self.line, self.tensors, self.axis = line, tensors, axis


class ContractError(Exception):
    """A part lacks a name or shape of the contract; the message is one sentence."""


GUARDED_ERRORS = (NotStarted, StudentError, ContractError)  # what a guarded call may raise about the code that it asked
