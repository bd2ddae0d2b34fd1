"""All that the trusted side reads of what was handed in is read by the functions in this folder.

Each takes bytes or a path from anybody, in any state, and gives a value or an Unfit with half a sentence. None
follows a link, waits for a pipe, or takes more bytes, values, entries or seconds than it says; the work grows as
the size does. They are fuzzed by grading/tests/grader/test_untrusted_fuzz.py.

    files.py      the bytes of a file on disk
    documents.py  JSON
    notebooks.py  the cells of a notebook
    archives.py   what is in a .zip, under one budget for all that is nested
    tables.py     CSV, whatever separates its columns
"""


class Unfit(ValueError):
    """What can't be used. The message goes on after the thing's name: what is wrong, a colon, what to do."""
