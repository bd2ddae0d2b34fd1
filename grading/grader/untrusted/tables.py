"""A table that somebody exported: CSV in UTF-8 or UTF-16, with commas, semicolons or tabs."""

import codecs
import csv
import io

from grading.grader.untrusted import Unfit

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
ROWS = 100_000
UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)  # as spreadsheets write "Unicode text"


def read_table(data, columns):
    """[(line, texts of these columns)] of a table whose first row names them, in any order and case."""
    try:
        text = data.decode("utf-16" if data.startswith(UTF16) else "utf-8-sig")
    except UnicodeDecodeError:
        raise Unfit("can't be read as CSV (it is not UTF-8 text): save it as CSV in UTF-8") from None
    for separator in SEPARATORS:
        rows = _rows(text, separator)
        if rows and "".join(rows[0][1]).startswith("sep="):  # a line for spreadsheets only
            del rows[0]
        titles = [title.strip().casefold() for title in rows[0][1]] if rows else []
        if all(column in titles for column in columns):
            at = [titles.index(column) for column in columns]
            return [(line, _cells(line, row, at, columns)) for line, row in rows[1:] if any(map(str.strip, row))]
    needed, marks = " and ".join(columns), ", ".join(SEPARATORS.values())
    raise Unfit(f"has no columns {needed} in its first line: name them there, with one of {marks} between them")


def _rows(text, separator):
    """[(number of the line that it ends on, cells)] of each row."""
    reader, rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator), []
    try:
        for row in reader:
            rows.append((reader.line_num, row))
            if len(rows) > ROWS:
                raise Unfit(f"has more than {ROWS:,} rows: give the table of this week only")
    except csv.Error as error:
        raise Unfit(f"can't be read as CSV ({error}): save it as CSV in UTF-8") from None
    return rows


def _cells(line, row, at, columns):
    if max(at) >= len(row):
        raise Unfit(f"has too few cells in line {line}: the columns {' and '.join(columns)} are needed in each")
    return [row[place].strip() for place in at]
