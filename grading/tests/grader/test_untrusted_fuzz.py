"""Whatever the bytes are, each reader of the trusted side gives a value or one sentence, and no other error.

Ten seconds in all; NANOLM_FUZZ_SECONDS says otherwise, and `make fuzz` takes ten minutes.
"""

import io
import json
import os
import time
import unicodedata
import zipfile
from itertools import count

import pytest

hypothesis = pytest.importorskip("hypothesis")

from hypothesis import strategies as st  # noqa: E402

from grading.grader.inside.text import clean  # noqa: E402
from grading.grader.results import file_name  # noqa: E402
from grading.grader.spreadsheet import as_csv, harmless  # noqa: E402
from grading.grader.untrusted import Unfit  # noqa: E402
from grading.grader.untrusted.archives import Budget, entries_of, read_stream  # noqa: E402
from grading.grader.untrusted.documents import decoded, first_value, measured  # noqa: E402
from grading.grader.untrusted.notebooks import read_notebook  # noqa: E402
from grading.grader.untrusted.tables import read_table  # noqa: E402
from nanolm.source import SourceError, taken_from_torch, text_of  # noqa: E402

SECONDS = float(os.environ.get("NANOLM_FUZZ_SECONDS", "10"))


def packed(method):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        archive.writestr("exercises_en/modules.py", b"x = 1\n" * 50)
        archive.writestr("w\u00e9ek06.ipynb", b"{}")
        archive.writestr("empty/", b"")
    return stream.getvalue()


CELL = {"cell_type": "markdown", "id": "a", "metadata": {"nbgrader": {"grade_id": "q", "points": 3}}, "source": ["x\n"]}
NOTEBOOKS = [
    json.dumps({"cells": [CELL, CELL], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1).encode(),
    b'{"worksheets": [{"cells": [{"cell_type": "heading", "level": 2, "source": "x"}]}], "nbformat": 3}',
    b'<<<<<<< a\n{"cells": [\n||||||| b\n{}\n=======\n{"cells": []}\n>>>>>>> c\n',
]
ZIPS = [packed(method) for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)]
TABLES = [
    b"student;time\nada;2026-01-10T10:00Z\n", "student\ttime\n\u00e4\t1\n".encode("utf-16"),
    b'"student","time"\n"a\n",""\n', b'student,time\n"' + b"x" * 140_000,
]  # fmt: skip
SOURCES = [b"# coding: latin-1\nimport torch.nn as nn\nx = nn.a.b.RMSNorm\n", b"\xff\xfed\0e\0f\0", b"<<<<<<< a\n"]
PIECES = [b"", b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b'"', b"\\", b"[" * 50, b"{", b"]", b",", b"\n",
          b"<<<<<<< ", b"=======", b">>>>>>> ", b"1e999", b"-", b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06",
          b"\xff" * 8, b"\x09\0", b";", b"..", b"/", b"\r"]  # fmt: skip
TEXTS = st.text(st.characters(), max_size=30)  # also lone surrogates


@st.composite
def damaged(draw, seeds):
    """One of the seeds with pieces of it cut out, doubled, moved and replaced; or any bytes at all."""
    data = draw(st.sampled_from(seeds))
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, min(len(data), start + 40)))
        new = draw(st.one_of(st.sampled_from(PIECES), st.binary(max_size=6)))
        again = data[draw(st.integers(0, len(data))) :][:40] if draw(st.booleans()) else b""
        data = data[:start] + new + again + data[end:]
    return data


def any_of(seeds):
    return st.one_of(damaged(seeds), damaged(seeds), st.binary(max_size=200))


def notebook(data):
    found = read_notebook(data)
    for cell in found.cells:
        assert all(isinstance(word, str) for word in (cell.kind, cell.text, cell.id, cell.grade_id))
        assert isinstance(cell.attachments, dict)


def document(data):
    first_value(measured(decoded(data)[0]))


def archive(data):
    budget = Budget(size=1_000_000, entries=100)
    for entry in entries_of(io.BytesIO(data), budget):
        try:
            if not entry.trouble:
                assert len(read_stream(entry.open, 100_000, budget)) <= 100_000
        except Unfit:
            pass


def table(data):
    for line, (student, moment) in read_table(data, ("student", "time")):
        assert line > 0 and isinstance(student, str) and isinstance(moment, str)


def source(data):
    try:
        text = text_of(data, "modules.py")
    except SourceError as error:
        assert clean(str(error)).startswith("modules.py")
        return
    text.encode("utf-8")
    taken_from_torch(text, ("RMSNorm",))


def shown(text):
    for word in (harmless(text), *as_csv((text, text)).rstrip("\n").split("\n")):
        assert word.isprintable() and not word.lstrip(' ,"').startswith(("=", "+", "-", "@"))
        word.encode("utf-8")
    assert clean(text).isascii() and clean(text).isprintable()


def names(pair):
    one, other = pair
    files = [unicodedata.normalize("NFKC", file_name(name)).casefold() for name in pair]
    assert (files[0] == files[1]) is (one == other)
    assert all("/" not in name and name not in ("", ".", "..") and len(name) <= 100 for name in files)


READERS = {
    notebook: any_of(NOTEBOOKS), document: any_of(NOTEBOOKS), archive: any_of(ZIPS), table: any_of(TABLES),
    source: any_of(SOURCES), shown: TEXTS, names: st.tuples(TEXTS, TEXTS),
}  # fmt: skip


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__name__)
def test_a_reader_gives_a_value_or_a_sentence(reader):
    def ask(data):
        try:
            reader(data)
        except Unfit as error:
            assert str(error) and "\n" not in clean(str(error))

    end = time.monotonic() + SECONDS / len(READERS)
    for seed in count():  # always the same ones, so that what is found is found again
        test = hypothesis.given(READERS[reader])(ask)
        test = hypothesis.settings(max_examples=100, deadline=None, database=None,
                                   suppress_health_check=list(hypothesis.HealthCheck))(test)  # fmt: skip
        hypothesis.seed(seed)(test)()
        if time.monotonic() > end:
            return


