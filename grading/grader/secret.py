"""The instructor's secret, and what is derived from it: the seed of the private run. It is never printed."""

import hashlib
import hmac
import os
from pathlib import Path

from grading.grader.untrusted.files import keep_out

WEEK = "modern-block"
LEAST = 16  # bytes; a shorter secret can be guessed


class SecretError(Exception):
    """There is no usable secret; the message is one sentence."""


def read_secret(where):
    """The secret in a file, or in the environment variable of that name."""
    path = Path(where)
    if path.is_file():
        keep_out(path)
        secret = path.read_bytes().strip()
    elif where in os.environ:
        secret = os.environ[where].encode()
    else:
        raise SecretError("--secret names no file and no environment variable: write a long random text into a file.")
    if len(secret) < LEAST:
        raise SecretError(f"the secret has fewer than {LEAST} bytes and could be guessed: take a longer random text.")
    return secret


def private_seed(secret):
    """The seed of every random input of the private run; never 0, which is the public one."""
    return 1 + int.from_bytes(_derive(secret, f"seed of {WEEK}")[:5], "big")


def fingerprint(secret):
    """Which secret a result was graded with, without a way back to it."""
    return _derive(secret, "fingerprint").hex()[:16]


def _derive(secret, purpose):
    return hmac.new(secret, purpose.encode(), hashlib.sha256).digest()
