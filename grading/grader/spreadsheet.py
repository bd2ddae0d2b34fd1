"""Tables that people open in spreadsheets and terminals: no cell is a formula, none holds a control."""

import csv
import io
import re

# What a formula begins with, also in the wide letters of East Asia, and where a cell begins for a spreadsheet that
# takes semicolons for the separator.
FORMULA = re.compile(r"(^|;) *(?=[=+\-@\uff1d\uff0b\uff0d\uff20|%])")


def harmless(text):
    """Text on one line, letters and signs only, that no spreadsheet takes for a formula; names come from students."""
    text = "".join(letter if letter.isprintable() else " " for letter in str(text))
    return FORMULA.sub(r"\1'", " ".join(text.split()))


def as_csv(*rows, end="\n"):
    """Rows as CSV."""
    stream = io.StringIO()
    csv.writer(stream, lineterminator=end).writerows([harmless(cell) for cell in row] for row in rows)
    return stream.getvalue()
