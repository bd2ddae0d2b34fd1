"""Questions that are asked of every part: in training, in any layout, beside another one of its kind."""

import torch

from machinery import expect
from nanolm.errors import StudentError

MODES = "Does forward ask self.training, or whether gradients are on? The modern block is one program in both."
LAYOUTS = "Does a .view() need memory in one piece, or does something write into its input?"
TWO = "Is something kept on the class or in the module's file, where the next object finds it?"


def same_in_training(part, given, upstream, within=1e-4):
    """In training, with gradients on, the output is that of evaluation without them; gives what came out of both."""
    still = part(*given)
    expect.tensor(still, upstream.shape)
    expect.differ(still, 0.0, 1e-2, "nothing comes out", "Is the result returned?")
    moving = part.run(*given, upstream=upstream, training=True)
    expect.close(moving.output, still, within, "in training the output is another one than in evaluation", MODES)
    return still, moving


def same_with_gradients(function, given, upstream, within=1e-5):
    """The same of a function, which has no mode: with gradients on, its output is what it is without them."""
    still = function(*given)
    expect.tensor(still, upstream.shape)
    outcome = function.run(*given, upstream=upstream)
    symptom = "where gradients are on the result is another one"
    expect.close(outcome.output, still, within, symptom, "Does the function ask whether gradients are on?")
    return outcome


def same_in_any_layout(ask, *given, layouts=("transposed",), within=1e-5):
    """`ask.run` gives the same for the first input in another layout, and leaves it as it is."""
    plain = ask.run(*given).output
    for layout in layouts:
        outcome = ask.run(*given, layout=layout)
        expect.close(outcome.output, plain, within, f"an input that is {layout} in memory gives other values", LAYOUTS)
        expect.identical(outcome.inputs[0], given[0], "the caller's tensor was changed", LAYOUTS)


def objects_do_not_meet(first, given, second, right, within=1e-3):
    """`second`, of other sizes, is built and asked in between: it is right, and `first` answers as before.

    Both are functions: `first` builds a module, `second` builds another and gives its output.
    """
    part = first()
    before = part(*given)
    expect.close(second(), right, within, "beside an object of other sizes the result is wrong", TWO)
    expect.close(part(*given), before, 1e-6, "after an object of other sizes the first one gives other values", TWO)


def leaves_torch_as_it_was(student, module):
    """Neither the import of this file nor what was asked in this test has changed a setting of the whole program."""
    cause = (
        "Is there a call that sets something for the whole program? Say it where it is needed: dtype=, device=, with."
    )
    changed = student.changed_settings(module)
    expect.same(changed, [], f"{module}.py changes settings that other code relies on", cause)


def asked_elsewhere(*works):
    """Ask what may fail: on another device, say, where code that works on a GPU can fail for want of data."""
    for work in works:
        try:
            work()
        except StudentError:
            pass


def on_meta(*shape, dtype=torch.float32):
    return torch.empty(shape, dtype=dtype, device="meta")
