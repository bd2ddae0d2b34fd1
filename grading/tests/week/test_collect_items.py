"""One student's archive costs that student alone, and never more than a budget, whatever is in it."""

import io
import struct
import zipfile

import pytest

pytest.importorskip("nbgrader")

from courses import WORK, below, said, zipped

from grading.grader.untrusted import Unfit
from grading.grader.untrusted.archives import Budget, entries_of, read_stream
from grading.week.collect.items import Item, opened

MB = 1_000_000


def patched(data, local=(), central=()):
    """A zip with bytes put into each local header and each entry of the table: (offset, bytes)."""
    raw = bytearray(data)
    for mark, changes in ((b"PK\x03\x04", local), (b"PK\x01\x02", central)):
        at = raw.find(mark)
        while at >= 0:
            for offset, new in changes:
                raw[at + offset : at + offset + len(new)] = new
            at = raw.find(mark, at + 4)
    return bytes(raw)


def method(data, number):
    """A zip whose files say that they are packed by another method."""
    return patched(data, [(8, struct.pack("<H", number))], [(10, struct.pack("<H", number))])


def crowded(count):
    """A zip whose table names one file so many times."""
    data = zipped({"x": b""})
    start, end = data.find(b"PK\x01\x02"), data.find(b"PK\x05\x06")
    table = data[start:end] * count
    tail = bytearray(data[end:])
    tail[8:12] = struct.pack("<HH", count & 0xFFFF, count & 0xFFFF)
    tail[12:20] = struct.pack("<LL", len(table), start)
    return data[:start] + table + bytes(tail)


def many(count):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for number in range(count):
            archive.writestr(f"{number}", b"")
    return stream.getvalue()


UTF8 = struct.pack("<H", 0x800)
ODD = {  # an archive, and what is said of it
    "a local header that is no text": (patched(zipped(WORK), [(6, UTF8), (30, b"\xff\xfe")]), "modules.py is damaged"),
    "a table that is no text": (
        patched(zipped(WORK), [], [(8, UTF8), (46, b"\xff\xfe")]), "ada.zip is no sound .zip file"),
    "a header that differs": (patched(zipped(WORK), [(30, b"zzz")]), "modules.py is damaged"),
    "Deflate64": (method(zipped(WORK), 9), "modules.py is packed by Deflate64, which can't be read here"),
    "PPMd": (method(zipped(WORK), 98), "modules.py is packed by PPMd"),
    "a method of the future": (method(zipped(WORK), 1234), "modules.py is packed by the method 1234"),
    "LZMA that is none": (method(zipped(WORK), 14), "modules.py is damaged"),
    "a strong lock": (patched(zipped(WORK), [(6, b"\x40")], [(8, b"\x40")]), "modules.py is locked with a password"),
    "AES": (method(zipped(WORK), 99), "modules.py is locked with a password"),
    "RAR": (b"Rar!\x1a\x07\x01\x00" + b"x" * 100, "ada.zip is a RAR archive and no .zip file"),
    "7-Zip": (b"7z\xbc\xaf\x27\x1c" + b"x" * 100, "ada.zip is a 7-Zip archive"),
    "gzip": (b"\x1f\x8b\x08" + b"x" * 100, "ada.zip is a gzip file"),
    "tar": (b"week06.ipynb".ljust(257, b"\0") + b"ustar\0", "ada.zip is a tar archive"),
    "a table of 100,000 files": (crowded(100_000), "lists too many files"),
    "20,001 files": (many(20_001), "makes more than 20,000 files"),
    "many archives of many files": (
        zipped({f"{n}.zip": many(6_000) for n in range(4)}), "makes more than 20,000 files with all that is in it"),
    "a comment without end": (zipped(WORK)[:-2] + b"\xff\xff", "none of the week's files"),
}  # fmt: skip


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("wrapped", [False, True], ids=["in a folder", "in the platform's zip"])
def test_an_odd_archive_costs_its_student_alone_and_is_named_truly(collect, odd, wrapped):
    archive, words = ODD[odd]
    source = {"ada.zip": archive, **({"grace.zip": zipped(WORK)} if wrapped else below("grace", WORK))}
    code, submitted, rows, out = collect({"all.zip": zipped(source)} if wrapped else source)
    assert "Traceback" not in out and submitted["grace"] == WORK
    if odd != "a comment without end":
        assert code == 1 and words in said(rows, "ada") and "ada" not in submitted


def test_one_students_thousands_of_files_stop_no_one_after_them(collect):
    def prepare(source):
        for number in range(20_050):
            (source / "ada" / str(number)).touch()

    code, submitted, rows, _ = collect({**below("ada", {"a.txt": b""}), **below("grace", WORK)}, prepare)
    assert code == 1 and set(submitted) == {"grace"} and "more than 20,000 files" in said(rows, "ada")


def opened_with(budget, data):
    items = [Item(("ada.zip",), lambda: io.BytesIO(data))]
    return [item.trouble for item in opened(items, budget) if item.trouble]


def test_the_budget_is_one_for_all_that_is_nested():
    large = io.BytesIO()
    with zipfile.ZipFile(large, "w") as archive:  # not packed itself, so that its own size is large
        archive.writestr("zeros", b"\0" * 2 * MB)
    nested = zipped({f"{n}.zip": zipped({"inner.zip": large.getvalue()}) for n in range(4)})
    assert opened_with(Budget(), nested) == []
    trouble = opened_with(Budget(size=5 * MB), nested)
    assert trouble and all("makes more than 5 MB with all that is in it" in words for words in trouble)


def test_a_bomb_is_left_after_a_piece_and_not_unpacked():
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("x", b"\0" * 200 * MB)
    assert len(stream.getvalue()) < 2_000
    entry = entries_of(stream, Budget())[0]
    with pytest.raises(Unfit, match="has more than 20 MB"):
        read_stream(entry.open, 20 * MB, Budget())


def test_the_seconds_of_a_budget_are_counted_while_it_unpacks(monkeypatch):
    clock = iter(range(0, 10_000, 10))
    monkeypatch.setattr("grading.grader.untrusted.archives.time.thread_time", lambda: next(clock))
    with pytest.raises(Unfit, match="takes more than 30 seconds"):
        read_stream(lambda: io.BytesIO(b"x" * MB), 2 * MB, Budget())


@pytest.mark.parametrize("packing", [zipfile.ZIP_STORED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_ways_to_pack_are_read(collect, packing):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", packing) as archive:
        for name, data in WORK.items():
            archive.writestr(name, data)
    code, submitted, _, _ = collect({"ada.zip": stream.getvalue()})
    assert code == 0 and submitted["ada"] == WORK


