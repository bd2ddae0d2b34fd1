"""The Subject that the tests ask when the code runs in a worker: the same questions, other hands.

It gives back what `nanolm.asking.subject` gives in process: tensors, numbers, names, an Outcome, or one of
its exceptions. Whatever a worker says that has not the agreed form ends that worker.
"""

import torch

from nanolm.answers import Foreign
from nanolm.asking.counting import COUNTS
from nanolm.asking.subject import FUNCTIONS, AskedFunction, AskedPart, Outcome, Subject
from nanolm.impl import CONTRACT
from nanolm.settings import SETTINGS

MODULES = {name for names in CONTRACT.values() for name in names} - FUNCTIONS
OUTCOME_FIELDS = {"output", "inputs", "grad", "grads", "cache", "cache_length"}


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
