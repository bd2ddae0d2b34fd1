"""The Subject that the tests ask when the code runs in a worker: the same questions, other hands.

It gives back what `nanolm.asking.subject` gives in process: tensors, numbers, names, an Outcome, or one of
its exceptions. Whatever a worker says that has not the agreed form ends that worker.
"""

import torch

from grading.grader.inside import wire
from grading.grader.lost_worker import WorkerLost
from grading.grader.states import REFUSED, TIMED_OUT
from nanolm.answers import Foreign
from nanolm.asking.counting import COUNTS
from nanolm.asking.subject import FUNCTIONS, AskedFunction, AskedPart, Outcome, Subject
from nanolm.errors import ContractError, NotStarted, StudentError
from nanolm.impl import CONTRACT, ImplementationError
from nanolm.settings import SETTINGS

MODULES = {name for names in CONTRACT.values() for name in names} - FUNCTIONS
OUTCOME_FIELDS = {"output", "inputs", "grad", "grads", "cache", "cache_length"}


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


class RemoteSubject(Subject):
    """One submission, asked by name through its workers."""

    def __init__(self, implementation, workers):
        super().__init__(implementation)
        self.workers = workers
        workers.forget()

    def __getattr__(self, name):
        self.asked[name] = None
        if name in FUNCTIONS:
            return RemoteFunction(self, name)
        if name not in MODULES:
            raise AttributeError(f"{name} is not a public name of the exercises.")
        return lambda *args, **kwargs: self._built(name, args, kwargs)

    def LanguageModel(self, cfg):
        """The whole model of `cfg`, put together in the worker."""
        self.asked["LanguageModel"] = None
        return self._built("LanguageModel", (cfg,), {})

    def taken_from_torch(self, module, among):
        """{file: names of these that it takes from torch}, read by a worker of its own."""
        return self.workers.taken_from_torch(module, among)

    def ask(self, *request, **more):
        """An answer of the workers; its exceptions are kept in the transcript, as in process."""
        try:
            return self.workers.ask(*request, **more)
        except Exception as error:
            self.noted(error)
            raise

    def outcome(self, answer, given):
        """The Outcome of a call with these inputs, kept in the transcript."""
        return self.noted(self.read_outcome(answer, given))

    def read_outcome(self, answer, given):
        """The Outcome of a call with these inputs, which come back; as None where they are as they were."""
        if not isinstance(answer, dict) or set(answer) != OUTCOME_FIELDS or not _well_formed(answer, len(given)):
            self.workers.refuse("it is not the outcome of a call")
        answer["inputs"] = [
            _clone(before) if now is None else now for before, now in zip(given, answer["inputs"], strict=True)
        ]
        return Outcome(**answer)

    def changed_settings(self, module):
        """Names of the calls by which the import of this file, or what was asked so far, has changed a setting."""
        answer = self.ask("changed", module)
        if not isinstance(answer, list) or not all(name in SETTINGS for name in answer):
            self.workers.refuse("it does not name settings")
        return self.noted(answer)

    def _built(self, name, args, kwargs):
        handle = self.workers.new_handle()
        self.workers.order("build", name, args, kwargs, **{"as": handle})
        return RemotePart(self, handle)


def _clone(value):
    return value.clone() if isinstance(value, torch.Tensor) else value


def _well_formed(answer, count):
    gradients = (answer["grad"], *answer["grads"].values()) if isinstance(answer["grads"], dict) else ("no dict",)
    return (
        isinstance(answer["inputs"], list)
        and len(answer["inputs"]) == count
        and all(gradient is None or isinstance(gradient, (torch.Tensor, Foreign)) for gradient in gradients)
        and isinstance(answer["cache"], list)
        and all(isinstance(layer, tuple) and len(layer) == 2 for layer in answer["cache"])
        and isinstance(answer["cache_length"], int)
    )


class RemoteFunction(AskedFunction):
    """A public function of the submission."""

    def run(self, *args, upstream=None, by_hand=False, layout="", **kwargs):
        """Call it; with `upstream` also differentiate with respect to the first argument, `by_hand` not even inside."""
        more = {"upstream": upstream, "by_hand": by_hand, "layout": layout}
        answer = self.subject.ask("function", self.name, args, more | kwargs)
        return self.subject.outcome(answer, args)


class RemotePart(AskedPart):
    """A module that lives in the worker, by its number there."""

    def __init__(self, subject, handle):
        self.subject, self._handle = subject, handle

    def run(self, *args, upstream=None, training=False, layout=""):
        """Call it, `training` in training mode; with `upstream` also differentiate, see nanolm/asking/subject.py."""
        return self.subject.outcome(self._ask("run", *args, upstream=upstream, training=training, layout=layout), args)

    def step(self, *args, upstream, rate=0.1):
        """One training step by plain gradient descent; the Outcome from before the update."""
        return self.subject.outcome(self._ask("step", *args, upstream=upstream, rate=rate), args)

    def open_cache(self, window=None):
        """A new cache in the worker, by its number there."""
        handle = self.subject.workers.new_handle()
        self.subject.workers.order("cache", "", (window,), part=self._handle, **{"as": handle})
        return handle

    def feed(self, cache, *args, training=False):
        """One call with the cache of this number, or with none."""
        answer = self.subject.ask("feed", "", args, {"training": training}, part=self._handle, cache=cache)
        return self.subject.read_outcome(answer, ())

    def counted(self, *args, training=False):
        """What one forward makes torch do; with `training` a backward belongs to it."""
        answer = self._ask("counted", *args, training=training)
        if not isinstance(answer, dict) or {name: type(n) for name, n in answer.items()} != dict.fromkeys(COUNTS, int):
            self.subject.workers.refuse("it is not a count of operations")
        return answer

    def load(self, tensors):
        """Load weights by their contract names; a missing name or other shape is a ContractError."""
        self.subject.workers.order("method", "load", (dict(tensors),), part=self._handle)
        return self

    def state(self):
        """The state dict."""
        return self._names("state", (torch.Tensor, Foreign))

    def shapes(self):
        """Name -> shape of every parameter."""
        return self._names("shapes", tuple)

    def bfloat16(self):
        self._ask("bfloat16")
        return self

    def double(self):
        self._ask("double")
        return self

    def half(self):
        self._ask("half")
        return self

    def to_meta(self):
        """Move to the meta device, which stands in for a GPU: it has shapes and no data."""
        self._ask("to_meta")
        return self

    def copy(self):
        """A deep copy."""
        handle = self.subject.workers.new_handle()
        self.subject.ask("copy", "", part=self._handle, **{"as": handle})
        return RemotePart(self.subject, handle)

    def _names(self, method, kind):
        answer = self._ask(method)
        if not isinstance(answer, dict) or not all(isinstance(value, kind) for value in answer.values()):
            self.subject.workers.refuse("it does not name tensors or shapes")
        return self.subject.noted(answer)

    def _ask(self, method, *args, **kwargs):
        return self.subject.ask("method", method, args, kwargs, part=self._handle)
