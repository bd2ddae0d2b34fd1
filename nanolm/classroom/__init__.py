"""The classroom's plumbing, so that a notebook's cells hold only what the class looks at.

    from nanolm.classroom import active, claim, pictures, show, watch

`active` is the code under test, `claim` states a number and checks it, `pictures` and `show` draw,
`watch` is the one thing to change, `train` trains a tiny model, `smollm2` brings a real one.
"""

from nanolm.classroom.claims import ClaimError, claim
from nanolm.classroom.measure import attention_weights, gradient_norms, streams
from nanolm.classroom.models import smollm2
from nanolm.classroom.started import active
from nanolm.classroom.style import COLOURS, DIVERGING, SEQUENTIAL, label_lines, pictures, show
from nanolm.classroom.training import Characters, batches, next_token_loss, train
from nanolm.classroom.widgets import choice, slider, watch

__all__ = [
    "COLOURS",
    "Characters",
    "ClaimError",
    "DIVERGING",
    "SEQUENTIAL",
    "active",
    "attention_weights",
    "batches",
    "choice",
    "claim",
    "gradient_norms",
    "label_lines",
    "next_token_loss",
    "pictures",
    "show",
    "slider",
    "smollm2",
    "streams",
    "train",
    "watch",
]
