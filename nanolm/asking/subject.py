"""What a test may ask of an implementation, and nothing more.

A test never holds a student's object: it asks a `Subject` to build a part, load weights, call,
differentiate, and gets plain tensors, numbers and names back. So the same test can ask code in
this process or code in another one. Every tensor goes over as a clone: what student code does to
its inputs is seen by the one test that looks, and by no other.
"""

import copy
import traceback
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch.overrides import TorchFunctionMode

from nanolm.answers import plain
from nanolm.asking import crash
from nanolm.asking.counting import Counting
from nanolm.asking.on_meta import as_on_a_gpu
from nanolm.cache import Cache, LayerCache
from nanolm.config import ModelConfig
from nanolm.errors import ContractError, NotStarted, StudentError
from nanolm.impl import CONTRACT, ImplementationError
from nanolm.model import LanguageModel
from nanolm.settings import kept
from nanolm.source import taken_from_torch

FUNCTIONS = {name for names in CONTRACT.values() for name in names if name[0].islower()}


@dataclass
class Outcome:
    """One call: its output, the inputs as they are afterwards, and the gradients where asked."""

    output: object
    inputs: list
    grad: torch.Tensor | None = None  # of the first input
    grads: dict = field(default_factory=dict)  # of the parameters; None where none arrived
    cache: list = field(default_factory=list)  # (k, v) of each layer after the call
    cache_length: int = 0


class Subject:
    """One implementation, asked by name: `student.RMSNorm(8)`, `student.apply_rope(x, cos, sin)`."""

    def __init__(self, implementation):
        self.implementation = implementation
        self.asked = {}  # names of the exercises that were asked for, in order
        self.transcript = []  # every answer that was given: an Outcome, a dict of names, or an exception
        self.changed = set()  # calls by which guarded code has changed a setting of the whole program

    def __getattr__(self, name):
        self.asked[name] = None
        if name in FUNCTIONS:
            return Function(self, name)
        return lambda *args, **kwargs: Part(self, lambda impl: getattr(impl, name)(*args, **kwargs))

    def LanguageModel(self, cfg):
        """The whole model of `cfg` around this implementation's parts."""
        self.asked["LanguageModel"] = None
        return Part(self, lambda impl: LanguageModel(cfg, impl))

    def timed(self, measurement, device, sizes):
        """What one measurement of nanolm/asking/timing.py gives, in this process."""
        from nanolm.asking.timing import Bench

        self.asked["LanguageModel"] = None  # of which every measurement is a part
        return self.guard(lambda: measurement(Bench(self.implementation, device, sizes)))

    def taken_from_torch(self, module, among):
        """{file: names of these that it takes from torch} of this file and those that no contract names."""
        texts = {module: self.implementation.source(module)} | self.implementation.beside()
        return {f"{name}.py": taken_from_torch(text, among) for name, text in texts.items()}

    def changed_settings(self, module):
        """Names of the calls by which the import of this file, or what was asked so far, has changed a setting."""
        return self.noted(sorted(self.changed | self.guard(lambda: self.implementation.settings_changed_by(module))))

    def guard(self, work):
        """Run student code: a stub is NotStarted, any other exception a StudentError with its place."""
        try:
            return self._guard(work)
        except Exception as error:
            self.noted(error)
            raise

    def noted(self, answer):
        """Keep an answer in the transcript, and hand it on."""
        self.transcript.append(answer)
        return answer

    def _guard(self, work):
        try:
            with kept(self.changed):
                return work()
        except (ImplementationError, ContractError):
            raise
        except NotImplementedError as error:
            frame = self._student_frame(error)
            if frame and frame.line.startswith("raise"):
                raise NotStarted(_exercise_name(str(error), frame.name), str(error)) from error
            raise self._student_error(error) from error  # torch's own, e.g. an operation that a device lacks
        except (Exception, SystemExit) as error:
            raise self._student_error(error) from error

    def _student_error(self, error):
        scene = crash.scene_of(error, self.implementation.folder)
        return StudentError(type(error).__name__, _first_line(error), **vars(scene))

    def _student_frame(self, error):
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if self.implementation.folder in Path(frame.filename).parents]
        return own[-1] if own else None


class UninitialisedIsNaN(TorchFunctionMode):
    """Memory that nobody fills reads as NaN, not as whatever lay there: a forgotten init shows at once."""

    _EMPTY = (torch.empty, torch.empty_like, torch.Tensor.new_empty)

    def __torch_function__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if function in self._EMPTY and result.is_floating_point():
            with torch.no_grad():
                result.fill_(torch.nan)
        return result


def seed_student_code():
    """Before each test: what student code draws itself (fresh weights, dropout) is the same in every run.

    Only the CPU's generator: torch.manual_seed asks every device and imports torch._dynamo, half a second.
    """
    torch.default_generator.manual_seed(0)


def _first_line(error):
    return str(error).strip().split("\n")[0]


def _exercise_name(message, function):
    """The exercise that a stub's message names ("file: NAME is not started"), else the function's."""
    name = message.split(" is not started")[0].rsplit(": ", 1)[-1]
    return name if name != message and " " not in name else function


class AskedFunction:
    """A public function by its name, wherever it runs; how it is called is its `run`."""

    def __init__(self, subject, name):
        self.subject, self.name = subject, name

    def __call__(self, *args, **kwargs):
        return self.run(*args, **kwargs).output


class AskedPart:
    """What is asked of a part in several calls, wherever it runs: by its `run`, `open_cache` and `feed`."""

    def __call__(self, *args):
        return self.run(*args).output

    def cached(self, *args, chunks, window=None, training=False):
        """Feed the sequence in chunks through a cache. A language model takes tokens (B, T), an
        attention or block x (B, T, D), cos and sin (T, H/2). The output is joined along T."""
        return self.subject.noted(in_chunks(self, args, chunks, window, training))

    def greedy(self, tokens, count):
        """`count` new tokens after tokens (T,), by a language model that keeps a cache where it can."""
        return token_by_token(self, tokens, count)


class Function(AskedFunction):
    """A public function of the implementation."""

    def run(self, *args, upstream=None, by_hand=False, layout="", **kwargs):
        """Call it; with `upstream` also differentiate with respect to the first argument.

        With `by_hand` torch differentiates nothing, not even inside: inference mode can't be left by enable_grad.
        `layout` is one of LAYOUTS.
        """
        return self.subject.noted(self.subject.guard(lambda: self._run(args, kwargs, upstream, by_hand, layout)))

    def _run(self, args, kwargs, upstream, by_hand, layout):
        function = getattr(self.subject.implementation, self.name)
        leaf, sent = _send(args, upstream is not None, layout)
        mode = torch.inference_mode() if by_hand else torch.set_grad_enabled(upstream is not None)
        with mode, as_on_a_gpu((*args, *kwargs.values())):
            output = function(*sent, **{k: _clone(v) for k, v in kwargs.items()})
        _backward(output, upstream)
        return Outcome(plain(output), plain(sent), leaf.grad if leaf is not None else None)


class Part(AskedPart):
    """A module of the implementation, built by it, in evaluation mode."""

    def __init__(self, subject, build=None, module=None):
        self.subject = subject
        if module is None:
            with UninitialisedIsNaN():
                module = subject.guard(lambda: build(subject.implementation))
        self._module = module.eval()

    def run(self, *args, upstream=None, training=False, layout=""):
        """Call it, `training` in training mode; with `upstream` also differentiate with respect to the first input and
        the parameters. `layout` is one of LAYOUTS."""
        self._module.train(training)
        try:
            return self.subject.noted(self.subject.guard(lambda: self._run(args, upstream, layout)))
        finally:
            self._module.eval()

    def step(self, *args, upstream, rate=0.1):
        """One training step by plain gradient descent, in training mode; the Outcome from before the update."""
        outcome = self.run(*args, upstream=upstream, training=True)
        with torch.no_grad():
            for name, parameter in self._module.named_parameters():
                if outcome.grads[name] is not None:
                    parameter -= rate * outcome.grads[name]
        return outcome

    def open_cache(self, window=None):
        """A new cache, empty, for this part to be fed with."""
        is_model = isinstance(self._module, LanguageModel)
        return Cache(self._module.cfg) if is_model else LayerCache(window)

    def feed(self, cache, *args, training=False):
        """One call with this cache, or with none: the Outcome, with all that the cache holds after it."""
        self._module.train(training)
        try:
            return self.subject.guard(lambda: self._fed(cache, args))
        finally:
            self._module.eval()

    def counted(self, *args, training=False):
        """What one forward makes torch do, see nanolm/asking/counting.py; with `training` a backward belongs to it."""
        return self.subject.guard(lambda: self._counted(args, training))

    def load(self, tensors):
        """Load weights by their contract names; a missing name or other shape is a ContractError."""
        self.subject.guard(lambda: self._load(tensors))
        return self

    def state(self):
        """The state dict, as clones."""
        return self.subject.noted({name: plain(tensor) for name, tensor in self._module.state_dict().items()})

    def shapes(self):
        """Name -> shape of every parameter."""
        return self.subject.noted({name: tuple(p.shape) for name, p in self._module.named_parameters()})

    def bfloat16(self):
        self.subject.guard(self._module.bfloat16)
        return self

    def double(self):
        self.subject.guard(self._module.double)
        return self

    def half(self):
        self.subject.guard(self._module.half)
        return self

    def to_meta(self):
        """Move to the meta device, which stands in for a GPU: it has shapes and no data."""
        self.subject.guard(lambda: self._module.to("meta"))
        return self

    def copy(self):
        """A deep copy."""
        return Part(self.subject, module=self.subject.guard(lambda: copy.deepcopy(self._module)))

    def _load(self, tensors):
        held = {name: tensor.shape for name, tensor in self._module.state_dict().items()}
        for name, tensor in tensors.items():
            if name in held and held[name] != tensor.shape:
                raise ContractError(
                    f"{name} has shape {tuple(held[name])}, but the contract says {tuple(tensor.shape)}."
                )
        clones = {name: tensor.clone() for name, tensor in tensors.items()}
        result = self._module.load_state_dict(clones, strict=False)
        if result.unexpected_keys:
            raise ContractError(f"there is no {result.unexpected_keys[0]}: __init__ was given; is it as it was?")

    def _run(self, args, upstream, layout=""):
        leaf, sent = _send(args, upstream is not None, layout)
        self._module.zero_grad(set_to_none=True)
        with torch.set_grad_enabled(upstream is not None), as_on_a_gpu(args):
            output = self._module(*sent)
        _backward(output, upstream)
        grads = {name: plain(parameter.grad) for name, parameter in self._module.named_parameters()}
        return Outcome(plain(output), plain(sent), leaf.grad if leaf is not None else None, grads)

    def _counted(self, args, training):
        self._run(args, None)  # what is made once and kept is there now
        _, sent = _send(args, training)
        counting = Counting(self._module)
        with torch.set_grad_enabled(training), as_on_a_gpu(args), counting:
            output = self._module(*sent)
            if training:
                _backward(output, torch.ones_like(output))
        self._module.zero_grad(set_to_none=True)
        del output
        self._run(args, None)
        counting.after_the_next_call()
        return counting.counts

    @torch.no_grad()
    def _fed(self, cache, args):
        output = self._module(*map(_clone, args), cache)
        if cache is None:
            return Outcome(plain(output), [])
        layers = cache.layers if isinstance(cache, Cache) else [cache]
        held = [(plain(layer.k), plain(layer.v)) for layer in layers]
        return Outcome(plain(output), [], cache=held, cache_length=cache.length)


def in_chunks(part, args, chunks, window, training=False):
    """What Part.cached gives, call by call: no code that is asked sees more of the sequence than its chunk."""
    cache, fed, start = part.open_cache(window), [], 0
    for chunk in chunks:
        first, *tables = (arg[:, start : start + chunk] if not number else arg[start : start + chunk]
                          for number, arg in enumerate(args))  # fmt: skip
        fed.append(part.feed(cache, first, *tables, training=training))
        start += chunk
    outputs = [each.output for each in fed]
    last = fed[-1]
    return Outcome(part.subject.guard(lambda: torch.cat(outputs, dim=1)), [], cache=last.cache,
                   cache_length=last.cache_length)  # fmt: skip


def token_by_token(part, tokens, count):
    """The likeliest tokens, call by call, as LanguageModel.generate has it: an empty cache gets the whole prefix."""
    cache, written = part.open_cache(), []
    fed = part.feed(cache, tokens[None])
    cached = fed.cache_length == len(tokens)
    for step in range(count):
        logits = fed.output
        token = part.subject.guard(lambda: int(logits[0, -1].argmax()))  # noqa: B023  called at once
        written.append(token)
        tokens = torch.cat((tokens, torch.tensor([token])))
        if step < count - 1:
            fed = part.feed(cache, tokens[None, -1:]) if cached else part.feed(None, tokens[None])
    return written


LAYOUTS = {  # of the first argument in memory; the numbers and shapes are as given
    "": lambda x: x,
    "transposed": lambda x: x.transpose(-3, -2).contiguous().transpose(-3, -2),  # as heads are after their split
    "expanded": lambda x: x[:1].expand_as(x),  # rows of the batch that are one row in memory: they must be equal
}


def _send(args, differentiate, layout=""):
    """Clones of the arguments; when differentiating, the first one hangs on a leaf that collects its gradient."""
    sent = [_clone(arg) for arg in args]
    if layout:
        sent[0] = LAYOUTS[layout](sent[0])
    leaf = None
    if differentiate and isinstance(sent[0], torch.Tensor) and sent[0].is_floating_point():
        leaf = sent[0].requires_grad_()
        sent[0] = leaf.clone()  # not the leaf itself: an in-place student has a test of its own
    return leaf, sent


def _clone(value):
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    return copy.copy(value) if isinstance(value, (list, ModelConfig)) else value  # what code could write into


def _backward(output, upstream):
    if upstream is not None and isinstance(output, torch.Tensor) and output.requires_grad:
        (output * upstream).sum().backward()  # of a scalar: backward(upstream) would import sympy, half a second
