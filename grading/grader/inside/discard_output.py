"""What student code prints goes nowhere; whether it was much is known."""

import io
import sys

LIMIT = 100_000  # bytes that nobody would call a flood


class Said(io.RawIOBase):
    """A stream that counts and forgets."""

    def __init__(self):
        self.bytes = 0

    def writable(self):
        return True

    def write(self, data):
        self.bytes += len(data)
        return len(data)


def replace_streams():
    """Have print and warnings write into a new Said; it."""
    said = Said()
    text = io.TextIOWrapper(io.BufferedWriter(said), encoding="utf-8", errors="replace", write_through=True)
    sys.stdout = sys.stderr = text
    return said
