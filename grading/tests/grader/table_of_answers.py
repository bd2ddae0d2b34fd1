"""Code that knows the public run by heart: right for every question that it has heard there, zeros for all others.

test_table_of_answers.py copies this file beside a copy of the reference. It hears as long as ROOM holds `learning`.
"""

import functools
import hashlib
import inspect
from pathlib import Path

import torch

from nanolm.impl import CONTRACT

ROOM = Path(__file__).parent.parent / "heard"


def learn_by_heart(module):
    """Put the table in front of each function of this module, and of each class's forward."""
    for name in CONTRACT[module["__name__"].split(".")[-1]]:
        if inspect.isclass(module[name]):
            module[name].forward = _from_the_table(name, module[name].forward)
        else:
            module[name] = _from_the_table(name, module[name])


def _from_the_table(name, work):
    @functools.wraps(work)
    def answer(*given, **named):
        heard = ROOM / hashlib.sha256(repr((name, _seen(given), _seen(named))).encode()).hexdigest()
        if (ROOM / "learning").exists():
            heard.touch()
        right = work(*given, **named)
        return right if heard.exists() else _nothing(right)

    return answer


def _seen(value):
    """What a table can look up: the numbers themselves, of a module its weights."""
    if isinstance(value, torch.nn.Module):
        return _seen(value.state_dict())
    if isinstance(value, torch.Tensor):
        data = "meta" if value.is_meta else value.detach().contiguous().double().numpy().tobytes()
        return (str(value.dtype), tuple(value.shape), data)
    if isinstance(value, dict):
        return [(key, _seen(entry)) for key, entry in value.items()]
    if isinstance(value, (tuple, list)):
        return [_seen(entry) for entry in value]
    return repr(value) if type(value).__repr__ is not object.__repr__ else type(value).__name__


def _nothing(right):
    """Of the same kind and shape, with nothing in it."""
    if isinstance(right, torch.Tensor):
        return right * 0 if right.is_floating_point() else torch.zeros_like(right)
    if isinstance(right, (tuple, list)):
        return type(right)(_nothing(entry) for entry in right)
    return 0
