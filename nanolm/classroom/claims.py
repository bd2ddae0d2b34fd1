"""A stated number, checked in the cell that shows it."""


class ClaimError(AssertionError):
    """A stated number is not what the code gives; the message is one sentence."""

    def _render_traceback_(self):  # what Jupyter shows in place of a traceback
        return [str(self)]


def claim(name, value, expected=None, within=None, at_least=None, at_most=None):
    """Print `name` and `value`, and raise ClaimError unless the value is what the text says.

    `expected` alone asks for equality, with `within` for a distance of at most that; `at_least` and
    `at_most` are for experiments. Tensors and lists are compared entry by entry.

        claim("0.9 to the 32nd", 0.9**32, 0.034, within=0.0005)
    """
    found, wanted = _numbers(value), _numbers(expected)
    stated = []
    holds = True
    if expected is not None:
        holds = len(found) == len(wanted) and all(
            abs(f - w) <= within if within is not None else f == w for f, w in zip(found, wanted, strict=True)
        )
        stated.append(_text(wanted))
    for bound, words in ((at_least, "at least"), (at_most, "at most")):
        if bound is not None:
            holds = holds and all(f >= bound if words == "at least" else f <= bound for f in found)
            stated.append(f"{words} {_number(bound)}")
    if not holds:
        raise ClaimError(
            f"{name}: this code gives {_text(found)}, the notebook says {' and '.join(stated)}. "
            f"Do the tests of this part pass? pytest names the first difference."
        )
    print(f"{name}: {_text(found)}   (stated: {' and '.join(stated)})")


def _numbers(value):
    if value is None:
        return []
    if hasattr(value, "tolist"):
        value = value.detach().flatten().tolist() if hasattr(value, "detach") else value.flatten().tolist()
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _text(numbers):
    texts = [_number(number) for number in numbers]
    return texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]"


def _number(number):
    if isinstance(number, int) or float(number).is_integer() and abs(number) >= 1000:
        return f"{int(number):,}"
    return f"{number:,.2f}" if 1000 <= abs(number) < 1e9 else f"{number:.4g}"
