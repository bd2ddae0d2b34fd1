"""A time is right, or a sentence: never a crash, and never in silence on time or late."""

import logging
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from grading.week.times import TimeError, read_time, show_time, time_in, write_time

NOW = datetime(2026, 12, 1, tzinfo=UTC)
TOKYO, BERLIN = ZoneInfo("Asia/Tokyo"), ZoneInfo("Europe/Berlin")
ONE = datetime(2026, 11, 29, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-29T10:00:00+09:00",
        "2026-11-29 10:00:00 +0900",
        "2026-11-29 10:00:00 +09:00",
        "2026-11-29T10:00:00+09",
        "20261129T100000+0900",
        "2026-11-29T01:00:00Z",
        "2026-11-29t01:00:00z",
        "2026-11-29 01:00:00.000000 UTC",
        "2026-11-29 01:00:00 GMT",
        "2026-11-29 10:00 Asia/Tokyo",
        "2026-11-28T20:00:00-05:00",
        "  2026-11-29 10:00:00,0 +09:00\n",
    ],
)
def test_every_way_to_write_an_offset_is_the_same_moment(text):
    assert read_time(text, now=NOW) == ONE


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "the time is empty"),
        (" \n", "the time is empty"),
        ("yesterday", '"yesterday" is not a time'),
        ("2026-11-29 10:00:00 JST", '"JST" may be any of several zones'),
        ("2026-11-29 10:00:00 CST", '"CST" may be any of several zones'),
        ("2026-11-29 10:00:00 Asia/Nowhere", '"Asia/Nowhere" is not a time zone'),
        ("2026-11-29 10:00:00 Asia/../../etc/passwd", "is not a time"),
        ("2026-11-29 10:00:00", "has no offset"),
        ("2026-11-29", "has no time of day"),
        ("2026-02-30T10:00:00Z", "is not a time"),
        ("2026-11-29T25:00:00Z", "is not a time"),
        ("2026-11-29T10:00:00+25:00", "is not a time"),
        ("0001-01-01T00:00:00+09:00", "is not a time of this course"),
        ("29.11.2026 10:00", "is not a time"),
        ("2026-12-01T00:06:00Z", "lies in the future"),
        ("9" * 10_000, "10,000 letters are not a time"),
        ("\x00\x1b[31m", "is not a time"),
    ],
)
def test_what_is_no_time_is_one_sentence(text, words):
    with pytest.raises(TimeError, match="^[^\n]*[.]$") as error:
        read_time(text, now=NOW)
    assert words in str(error.value) and len(str(error.value)) < 150


def test_clocks_may_differ_by_some_minutes():
    assert read_time("2026-12-01T00:04:59Z", now=NOW) > NOW


def test_a_time_without_offset_is_the_zones_where_one_is_given():
    assert read_time("2026-11-29 10:00", TOKYO, NOW) == ONE
    assert read_time("2026-07-01 12:00", BERLIN, NOW).hour == 10  # summer time
    assert read_time("2026-01-01 12:00", BERLIN, NOW).hour == 11


def test_what_is_written_is_read_alike_by_us_and_by_nbgrader():
    utils = pytest.importorskip("nbgrader.utils")
    for zone in (UTC, TOKYO, BERLIN):
        text = write_time(ONE, zone)
        assert read_time(text, now=NOW) == ONE
        assert utils.parse_utc(text) == ONE.replace(tzinfo=None)


def test_times_are_shown_on_the_courses_clock():
    assert show_time(ONE, TOKYO) == "2026-11-29 10:00:00 +0900"
    assert show_time(datetime(2026, 7, 1, tzinfo=UTC), BERLIN) == "2026-07-01 02:00:00 +0200"


def test_no_file_is_no_time_and_an_unreadable_one_a_sentence(tmp_path):
    assert time_in(tmp_path) is None
    (tmp_path / "timestamp.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(TimeError, match="can't be read"):
        time_in(tmp_path)
    (tmp_path / "timestamp.txt").write_bytes(b"\xef\xbb\xbf2026-01-10 01:00:00\r\n")  # as nbgrader's zip_collect: UTC
    assert time_in(tmp_path) == datetime(2026, 1, 10, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-01-10 10:00:00 +0900", datetime(2026, 1, 10, 1)),
        ("2026-01-10 10:00:00.5 UTC", datetime(2026, 1, 10, 10, 0, 0, 500_000)),
        ("2026-01-10 10:00:00 JST", None),
        ("", None),
        ("soon", None),
        ("2999-01-10T10:00:00Z", None),
    ],
)
def test_nbgrader_reads_time_stamps_by_our_rules_and_logs_the_sentence(tmp_path, caplog, monkeypatch, text, expected):
    coursedir = pytest.importorskip("nbgrader.coursedir")
    from grading.week import times

    monkeypatch.setattr(coursedir.CourseDirectory, "get_existing_timestamp", None)
    times.install()
    (tmp_path / "timestamp.txt").write_text(text, encoding="utf-8")
    directory = coursedir.CourseDirectory(root=str(tmp_path))
    directory.log = logging.getLogger("course")
    assert directory.get_existing_timestamp(str(tmp_path)) == expected
    assert ("without one, it is on time" in caplog.text) == (expected is None)


def test_the_courses_zone_is_nbgraders_own_setting_and_a_wrong_one_a_sentence():
    pytest.importorskip("nbgrader")
    from traitlets.config import Config

    from grading.week.times import course_zone

    assert course_zone(Config()) == ZoneInfo("UTC")
    assert course_zone(Config({"NbGraderAPI": {"timezone": "Asia/Tokyo"}})) == TOKYO
    with pytest.raises(TimeError, match='"Mars/Base" is not a time zone'):
        course_zone(Config({"NbGraderAPI": {"timezone": "Mars/Base"}}))
