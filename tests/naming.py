"""Which known mistake is it? The answers that code gave to a red test, against stored fingerprints.

A test's inputs are fixed, so the answers it gets (outputs, gradients, changed inputs, exceptions) are
a fingerprint of the code. fingerprints.safetensors holds those of every known mistake at the tests
that it turns red, as a few projections of each answer: enough to recognise, nothing to copy.
"""

import zlib
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import torch
from safetensors.torch import load_file

import parts
from nanolm import hint
from nanolm.subject import Outcome

FINGERPRINTS = Path(__file__).parent / "fingerprints.safetensors"

FINE, COARSE = 2e-3, 5e-2  # how close two styles of one mistake come: in fp32, and in 16 bits
PROJECTIONS = 3
MOST = 1 << 17  # entries of an answer that are looked at: three times the largest right one


def fingerprint(transcript):
    """(answers, 2 + PROJECTIONS) fp64: what kind of answer, how finely to compare, and projections of it."""
    rows = [row for answer in transcript for row in _rows(answer)]
    return tensor_of(rows)


def tensor_of(rows):
    """A fingerprint from its rows, as a report holds them."""
    return torch.tensor(rows, dtype=torch.float64).reshape(-1, 2 + PROJECTIONS)


def matches(seen, known):
    """Whether two fingerprints are of one behaviour."""
    if seen.shape != known.shape or not torch.equal(seen[:, :2], known[:, :2]):
        return False
    size = known[:, 2:].abs().amax(dim=1, keepdim=True)
    return bool(((seen[:, 2:] - known[:, 2:]).abs() <= known[:, 1:2] * size + 1e-6).all())


def _rows(answer):
    if isinstance(answer, Outcome):
        for value in (answer.output, answer.grad, *answer.grads.values(), *(t for kv in answer.cache for t in kv)):
            yield from _rows(value)
        for value in answer.inputs:  # also those: one may have been changed
            yield from _rows(value)
    elif isinstance(answer, dict):
        yield _code("names", *answer, *(_word(value) for value in answer.values()))
        for value in answer.values():
            if isinstance(value, torch.Tensor):
                yield from _rows(value)
    elif isinstance(answer, (list, tuple)) and any(isinstance(item, torch.Tensor) for item in answer):
        for item in answer:
            yield from _rows(item)
    elif isinstance(answer, torch.Tensor) and answer.device.type != "meta":
        yield _projected(answer)
    elif isinstance(answer, Exception):
        yield _code(type(answer).__name__, getattr(answer, "kind", ""))
    else:
        yield _code(_word(answer))


def _word(value):
    if isinstance(value, torch.Tensor):
        return f"{value.dtype} {tuple(value.shape)} {value.device.type}"
    return repr(value)


def _code(*words):
    return [float(zlib.crc32(" ".join(words).encode())), FINE] + [0.0] * PROJECTIONS


def _projected(tensor):
    if tensor.numel() > MOST:
        return _code(_word(tensor))
    values = tensor.double().flatten()
    kinds = (f"{int(torch.isnan(values).sum())} NaN", f"{int(torch.isinf(values).sum())} infinite")
    values = values.nan_to_num(0.0, 0.0, 0.0)
    step = torch.arange(1.0, values.numel() + 1, dtype=torch.float64)
    waves = torch.stack([torch.cos(step * (k + 1) * 0.7391 + k) for k in range(PROJECTIONS)])
    size = max(values.numel(), 1) ** 0.5
    within = COARSE if tensor.dtype in (torch.float16, torch.bfloat16) else FINE
    return [_code(_word(tensor), *kinds)[0], within, *(waves @ values / size).tolist()]


@cache
def read_fingerprints():
    """test -> {mistake id: fingerprint} of the stored file; empty where there is none."""
    known = {}
    if FINGERPRINTS.is_file():
        for key, stored in load_file(FINGERPRINTS).items():
            mistake, test = key.split("/")
            known.setdefault(test, {})[mistake] = stored
    return known


@dataclass(frozen=True)
class Named:
    """A mistake that was recognised: in how many of the part's red tests, and what it should redden."""

    id: str
    explains: frozenset
    predicts: frozenset


class Naming:
    """Collects the red tests of a run and names, part by part, the mistakes behind them."""

    def __init__(self, known=True):
        self._compares = known
        self._matching = {}  # part -> {red test: ids that match}

    @cached_property
    def _known(self):
        """test -> {mistake id: fingerprint}; read at the first red test."""
        return read_fingerprints() if self._compares else {}

    @property
    def knows_mistakes(self):
        """False where there is nothing to compare with."""
        return bool(self._known)

    def note(self, test, seen):
        """A red test and the fingerprint of the answers that it got."""
        known = self._known.get(test, {})
        matching = {mistake for mistake, stored in known.items() if matches(seen, stored)}
        self._matching.setdefault(parts.part_of_test(test), {})[test] = matching

    def red(self, part):
        """Names of the part's red tests."""
        return tuple(self._matching.get(part, ()))

    def named(self, part):
        """The mistakes that together explain most of the part's red tests, best first; none is guessed.

        A mistake counts only where it explains a red test that is not explained already, and wins
        over another that explains as many if fewer of its own tests stayed green.
        """
        found, open_tests = [], dict(self._matching.get(part, {}))
        red = set(open_tests)
        while open_tests:
            candidates = {mistake for matching in open_tests.values() for mistake in matching}
            if not candidates:
                break
            ranked = sorted(candidates, key=lambda mistake: self._rank(mistake, open_tests, red), reverse=True)
            best = ranked[0]
            explained = frozenset(test for test, matching in open_tests.items() if best in matching)
            found.append(Named(best, explained, self._predicts(best, part)))
            open_tests = {test: matching for test, matching in open_tests.items() if test not in explained}
        return found

    def _rank(self, mistake, open_tests, red):
        explained = sum(mistake in matching for matching in open_tests.values())
        part = parts.part_of_test(next(iter(open_tests)))
        still_green = len(self._predicts(mistake, part) - red)
        return explained - still_green, explained, mistake

    def _predicts(self, mistake, part):
        return frozenset(
            test for test, known in self._known.items() if mistake in known and parts.part_of_test(test) == part
        )

    def explanations(self):
        """Red test -> the id of the mistake that explains it, for those that one does."""
        return {test: named.id for part in self._matching for named in self.named(part) for test in named.explains}


def sentences(naming, part):
    """What to say about one part's red tests, line by line."""
    red, named = naming.red(part), naming.named(part)
    if not red:
        return
    explained = sum(len(each.explains) for each in named)
    if not naming.knows_mistakes:
        return
    if not named:
        yield f"{part}: not one of the mistakes that we know, or several at once. Start with {red[0]}."
        return
    if len(named) > 1:
        yield f"{part}: {len(named)} mistakes at once, it seems:"
    for each in named:
        entry = hint.mistakes()[each.id]
        yield f"{part}: {entry['symptom']} ({len(each.explains)} of {len(red)} red tests answer exactly so)"
        yield f"    {entry['cause']}"
        yield f"    python -m nanolm hint {each.id}"
    if explained < len(red):
        rest = [test for test in red if not any(test in each.explains for each in named)]
        yield f"{part}: and something else that we don't know, in {len(rest)} of {len(red)} red tests: see {rest[0]}."
