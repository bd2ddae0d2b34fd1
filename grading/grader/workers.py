"""The workers of one submission, as the trusted side sees them: asked, replaced when lost, kept to their time."""

from grading.grader.inside import wire
from grading.grader.lost_worker import WorkerLost
from grading.grader.states import REFUSED, TIMED_OUT
from nanolm.errors import ContractError, NotStarted, StudentError
from nanolm.impl import ImplementationError


class Workers:
    """The workers of one submission, one after the other: a new one for each part and after each loss.

    It keeps the time: no call, no part and no submission may use more than its limit.
    """

    def __init__(self, zygote, intake, allowance, run):
        self.zygote, self.intake = zygote, intake
        self._allowance, self._run = allowance, run
        self.lost = None  # the WorkerLost of the test that is running
        self._worker = None
        self._part = None
        self._begins = False  # no question of this test has been asked yet
        self._bytes = 0  # of the answers to this test, as fp64
        self.forget()
        self.flood = False  # code has printed much
        self._handles = 0

    def enter(self, part):
        """A test of this part begins."""
        if part != self._part:
            self.close()
        self._part, self.lost, self._begins, self._bytes = part, None, True, 0

    def close(self):
        """End the worker that is there."""
        if self._worker is not None:
            self._worker.close()
            self._worker = None

    def forget(self):
        """Another test asks: what was ordered before is not for it."""
        self._orders, self._tensors = [], []

    def settle(self):
        """A test has ended: what it has ordered and asked nothing of after that is done now."""
        if self._orders:
            self._send(self._orders.pop())

    def order(self, *request, **more):
        """Have something done before the next question is answered: one message is faster than two."""
        self._orders.append(self._request(*request, **more))

    def ask(self, *request, **more):
        """The value that the worker answers; the exception that it names; or WorkerLost."""
        return self._send(self._request(*request, **more))

    def _send(self, question):
        question["first"], tensors = self._orders, self._tensors
        self.forget()
        try:
            return self._ask(question, tensors)
        except WorkerLost as lost:
            self.lost = lost
            self.close()
            raise

    def _request(self, do, name, args=(), kwargs=None, **more):
        if self.lost:  # parts that lived in the lost worker are gone with it
            raise self.lost
        request = {
            "do": do, "name": name, "begin": self._begins, **more,
            "args": wire.encode(args, self._tensors), "kwargs": wire.encode(kwargs or {}, self._tensors),
        }  # fmt: skip
        self._begins = False
        return request

    def new_handle(self):
        """A number by which the worker will know a part."""
        self._handles += 1
        return self._handles

    def taken_from_torch(self, module, among):
        """What Subject.taken_from_torch gives, read by a worker that has run no code of the submission yet.

        Where that is not possible nothing is taken: Python can't import such a file either.
        """
        if module not in self.intake.texts:
            raise ImplementationError(self.intake.why_missing(module))
        worker = self.zygote.start(self.intake.files, self.intake.place)
        arguments = {"args": wire.encode((sorted(among),), []), "kwargs": wire.encode({}, [])}
        question = {"do": "taken", "name": module, **arguments}
        try:
            head, found = worker.ask(question, [], self.zygote.limits.call)
            return wire.decode(head["answer"], found) if "answer" in head else {}
        except WorkerLost:
            return {}
        finally:
            worker.close()

    def refuse(self, sentence):
        """End the worker: its answer has not the agreed form. Always raises WorkerLost."""
        self.close()
        self.lost = WorkerLost(REFUSED, f"an answer was refused: {sentence}")
        raise self.lost

    def _ask(self, request, tensors):
        seconds = self._seconds_left()
        if self._worker is None:
            self._worker = self.zygote.start(self.intake.files, self.intake.place)
        try:
            head, found = self._worker.ask(request, tensors, seconds)
        finally:
            self._allowance.use(self._run, self._part, self._worker.used)
            self.flood = self.flood or self._worker.flood
        try:
            if "error" in head:
                raise error_of(head["error"])
            self._bytes += sum(8 * tensor.numel() for tensor in found)
            if self._bytes > self.zygote.limits.answers:
                raise wire.WireError("the answers to this test are too large together")
            return wire.decode(head["answer"], found)
        except wire.WireError as error:
            self.refuse(error)

    def _seconds_left(self):
        seconds = self._allowance.left(self._run, self._part)
        if seconds <= 0:
            raise WorkerLost(TIMED_OUT, "the time that it may take is used up")
        return seconds


def error_of(described):
    """The exception that a worker describes."""
    if not isinstance(described, dict) or set(described) != set(wire.ERROR_FIELDS):
        raise wire.WireError("an error is not described as agreed")
    if not all(isinstance(text, str) for text in described.values()):
        raise wire.WireError("an error is not described as agreed")
    said = {name: wire.clean(text) for name, text in described.items()}
    match said["type"]:
        case "NotStarted":
            return NotStarted(said["name"], said["message"])
        case "StudentError":
            return StudentError(**{field: said[field] for field in wire.RAISED_FIELDS})
        case "ContractError":
            return ContractError(said["message"])
        case "ImplementationError":
            return ImplementationError(said["message"])
    raise wire.WireError("an error has an unknown type")
