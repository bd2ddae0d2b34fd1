"""JSON from anybody. Its size in memory is known before it is parsed: Python's values are many times as large."""

import json
import re

from grading.grader.untrusted import Unfit

VALUES = 500_000  # of a document: lists, objects and what they hold
DEPTH = 100  # lists and objects inside each other
# A string, also one that never ends: every letter is looked at once, and nothing is tried twice.
STRING = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\Z)', re.DOTALL)
BRACKET = re.compile(r"[\[\]{}]")


def measured(text):
    """The text, when a parser may have it: not too many values, not too deep; else Unfit."""
    bare = STRING.sub("", text)
    if bare.count(",") + bare.count("[") + bare.count("{") > VALUES:
        raise Unfit(f"holds more than {VALUES:,} values: hand in the week's files only")
    depth = 0
    for bracket in BRACKET.findall(bare):
        depth += 1 if bracket in "[{" else -1
        if depth > DEPTH:
            raise Unfit(f"is nested more than {DEPTH} deep: hand in the file as JupyterLab saves it")
    return text


def decoded(data):
    """The text of JSON in any of Unicode's encodings, with or without a mark; (text, whether all of it is text)."""
    encoding = json.detect_encoding(data)
    try:
        return data.decode(encoding), True
    except UnicodeDecodeError:
        return data.decode(encoding, "replace"), False


def first_value(text, at=0):
    """(value, end) of the JSON value that stands at a place of a `measured` text; Unfit where none does."""
    try:
        return json.JSONDecoder().raw_decode(text, at)
    except (ValueError, RecursionError):  # also a number of more digits than Python reads
        raise Unfit("is not JSON (cut short?): save it again and hand it in again") from None
