"""Which known mistake is it? The answers that code gave to a red test, against stored fingerprints.

A test's inputs are fixed, so the answers it gets (outputs, gradients, changed inputs, exceptions) are
a fingerprint of the code. fingerprints.safetensors holds those of every known mistake at the tests
that it turns red, as a few projections of each answer: enough to recognise, nothing to copy.
"""

import json
import re
import zlib
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path

import torch
from safetensors import safe_open

from machinery import parts
from nanolm.asking.subject import Outcome
from nanolm.student import hint

FINGERPRINTS = Path(__file__).parent / "fingerprints.safetensors"

FINE, COARSE = 2e-3, 5e-2  # how close two styles of one mistake come: in fp32, and in 16 bits
MOST, ENOUGH, FEW = 0.5, 0.6, 0.25  # shares of red tests that a name needs, see Naming
SEVERAL, NEARLY_ALL = 3, 0.9  # what explains so much is named whatever of it stayed green: half of it may be made
MOST_AT_ONCE = 3
RAISED = 0.0  # in that place: the row is an exception's
WIDE = (torch.float32, torch.float64)  # both are right where nothing else is said
PROJECTIONS = 3
LARGEST = 1 << 17  # entries of an answer that are looked at: three times the largest right one

# What an exception of torch is about, whatever the operation and the sizes.
COMPLAINTS = {
    "data": ("meta tensors", "Meta tensor"),
    "device": ("same device", "on meta", "on the meta"),
    "in place": ("inplace", "in-place operation", "in place operation"),
    "memory layout": ("view size is not compatible",),
    "a dtype without this operation": ("not implemented for", "view_as_complex", "unsupported dtype", "not supported"),
    "two dtypes": ("same dtype", "scalar type", "dtypes", "promotion"),
}


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


def raised(seen):
    """Whether the last answer of a fingerprint is an exception."""
    return len(seen) > 0 and float(seen[-1, 1]) == RAISED


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
        yield _code(*_raised(answer), within=RAISED)
    else:
        yield _code(_word(answer))


def _raised(error):
    """What raised, in words that hang on no spelling: numbers and names of the student's own stay out."""
    message = getattr(error, "message", str(error))
    about = next((about for about, words in COMPLAINTS.items() if any(word in message for word in words)), None)
    return type(error).__name__, getattr(error, "kind", ""), about or re.sub(r"\d+", "#", message)


def _word(value):
    if isinstance(value, torch.Tensor):
        dtype = "wide" if value.dtype in WIDE else str(value.dtype)
        return f"{dtype} {tuple(value.shape)} {value.device.type}"
    return repr(value)


def _code(*words, within=FINE):
    return [float(zlib.crc32(" ".join(words).encode())), within] + [0.0] * PROJECTIONS


def _projected(tensor):
    if tensor.numel() > LARGEST:
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
    """What is stored of the known mistakes.

    known   test -> {mistake id: its fingerprints, one for each hand that answers otherwise}
    red     mistake id -> the sets of tests that it turns red, one for each hand where they are others
    """
    known, red = {}, {}
    if FINGERPRINTS.is_file():
        with safe_open(FINGERPRINTS, "pt") as file:
            for key in file.keys():
                mistake, test, *_ = key.split("/")
                known.setdefault(test, {}).setdefault(mistake, []).append(file.get_tensor(key))
            for mistake, hands in json.loads(file.metadata()["red"]).items():
                red[mistake] = [frozenset(tests) for tests in hands]
    return Fingerprints(known, red)


@dataclass(frozen=True)
class Fingerprints:
    """Which answers the known mistakes give, and which tests they turn red."""

    known: dict
    red: dict


@dataclass(frozen=True)
class Named:
    """A mistake that was recognised: in which of the part's red tests, and which it should redden.

    `others` answer these tests in the same way: which of them it is, no test tells.
    """

    id: str
    explains: frozenset
    predicts: frozenset
    others: tuple = ()


def behaviour(mistake):
    """The id that stands for all mistakes of one behaviour."""
    return hint.mistakes()[mistake].get("same_as", mistake)


@dataclass(frozen=True)
class Red:
    """A red test: the known mistakes that answer as it was answered, and what kind of answer was wrong."""

    matching: frozenset
    raised: bool = False  # an exception ended it
    digits: int | None = None  # right ones, of a result that is nearly right


class Naming:
    """Collects the tests of a run and names, part by part, the mistakes behind the red ones."""

    def __init__(self, compares=True):
        self.compares = compares
        self._red = {}  # part -> {red test: Red}
        self._green = {}  # part -> tests that passed

    @cached_property
    def _known(self):
        """test -> {mistake id: fingerprints}; read at the first red test."""
        return read_fingerprints().known if self.compares else {}

    @cached_property
    def _reddens(self):
        """mistake id -> the sets of tests that it turns red, a set for each hand."""
        return read_fingerprints().red if self.compares else {}

    @property
    def knows_mistakes(self):
        """False where there is nothing to compare with."""
        return bool(self._known)

    def note_entry(self, entry):
        """What conftest.entry_of knows of a test."""
        if entry["outcome"] == "failed":
            self.note(entry["name"], tensor_of(entry["fingerprint"]), entry.get("digits"), "raised" in entry)
        elif entry["outcome"] == "passed":
            self.note_passed(entry["part"], entry["name"])

    def note_passed(self, part, test):
        """A test of this part that passed."""
        self._green.setdefault(part, set()).add(test)

    def note(self, test, seen, digits=None, no_answer=False):
        """A red test and the fingerprint of the answers that it got."""
        known = self._known.get(test, {})
        matching = {mistake for mistake, hands in known.items() if any(matches(seen, stored) for stored in hands)}
        red = Red(frozenset(matching), no_answer or raised(seen), digits)
        self._red.setdefault(parts.part_of_test(test), {})[test] = red

    def red(self, part):
        """Names of the part's red tests."""
        return tuple(self._red.get(part, ()))

    def named(self, part):
        """The mistakes that together explain most of the part's red tests, best first; none is guessed.

        A mistake is named where it explains most of the red tests that it could explain, and few of its own stayed
        green. Where an exception ended a test, only a mistake that is known for this exception explains it.
        """
        found, reds = [], self._red.get(part, {})
        open_tests = set(reds)
        while open_tests and len(found) < MOST_AT_ONCE:
            weighed = [self._weighed(mistake, part, open_tests) for mistake in self._candidates(part, open_tests)]
            weighed = [each for each in weighed if each is not None]
            if not weighed:
                break
            rank, best = max(weighed, key=lambda pair: (*pair[0], pair[1].id))
            equal = sorted(each.id for other, each in weighed if other == rank and each.explains == best.explains)
            others = tuple(name for name in equal if behaviour(name) != behaviour(best.id))
            found.append(replace(best, others=others))
            open_tests -= best.explains
        if len(reds) - len(open_tests) < MOST * len(reds):
            return []
        return found

    def _candidates(self, part, tests):
        return {mistake for test in tests for mistake in self._red[part][test].matching}

    def _weighed(self, mistake, part, open_tests):
        """(rank, Named) of a candidate, or None for one without weight."""
        reds, green = self._red[part], self._green.get(part, set())
        explained = {test for test in open_tests if mistake in reds[test].matching}
        if not self._is_a_crash(mistake) and all(reds[test].raised for test in explained):
            return None
        # In one hand a mistake shows in many tests, in another in one: it is measured by the hand that fits best.
        still_green, ran, predicted = min(
            ((len(tests & green), len(tests & (green | set(reds))), tests) for tests in self._predicts(mistake, part)),
            key=lambda hand: (hand[0], -hand[1], sorted(hand[2])),
        )
        explains_all = len(explained) >= SEVERAL and len(explained) >= NEARLY_ALL * len(reds)
        if not explains_all and (len(explained) < ENOUGH * ran or still_green > FEW * ran):
            return None
        rarity = sum(1 / len(reds[test].matching) for test in explained)
        return (len(explained) - still_green, round(rarity, 6)), Named(mistake, frozenset(explained), predicted)

    def _predicts(self, mistake, part):
        """The tests of this part that the mistake turns red, hand by hand."""
        return {
            frozenset(test for test in tests if parts.part_of_test(test) == part) for tests in self._reddens[mistake]
        }

    def _is_a_crash(self, mistake):
        """Whether an exception is what the mistake's own test sees of it."""
        hands = self._known.get(hint.mistakes()[mistake]["test"], {}).get(mistake, ())
        return any(raised(stored) for stored in hands)

    def explanations(self):
        """Red test -> the id of the mistake that explains it, for those that one does."""
        return {test: named.id for part in self._red for named in self.named(part) for test in named.explains}

    def only_raises(self, part):
        """Whether exceptions are all that there is to see; each is told where it was raised."""
        return all(red.raised for red in self._red.get(part, {}).values())

    def nearly(self, part):
        """The right digits of a part whose red tests all are nearly right, else None."""
        digits = [red.digits for red in self._red.get(part, {}).values()]
        return None if not digits or None in digits else min(digits)


def sentences(naming, part):
    """What to say about one part's red tests, line by line."""
    red, named = naming.red(part), naming.named(part)
    if not red or not naming.knows_mistakes:
        return
    if not named:
        yield from _unnamed(naming, part, red)
        return
    if len(named) > 1:
        yield f"{part}: {len(named)} mistakes at once, it seems:"
    for each in named:
        entry = hint.mistakes()[each.id]
        yield f"{part}: {entry['symptom']} ({len(each.explains)} of {len(red)} red tests answer exactly so)"
        yield f"    {entry['cause']}"
        yield f"    python -m nanolm hint {each.id}"
        for name in each.others[:1]:  # they look alike here; one more question is enough to tell
            yield f"    Or: {hint.mistakes()[name]['cause']} python -m nanolm hint {name}"
    rest = [test for test in red if not any(test in each.explains for each in named)]
    if rest:
        yield f"{part}: and something else that we don't know, in {len(rest)} of {len(red)} red tests: see {rest[0]}."


def _unnamed(naming, part, red):
    if (digits := naming.nearly(part)) is not None:
        yield f"{part}: nearly right, to {digits} digits. A number format (bf16, fp16), an eps, or a rounded constant?"
    elif not naming.only_raises(part):
        yield f"{part}: not one of the mistakes that we know, or several at once. Start with {red[0]}."
