"""Times of submissions: ISO 8601 with an offset in files, the course's zone on screen, UTC in between.

nbgrader's own reading of timestamp.txt takes "+0900" for 15 minutes and "JST" for UTC, and breaks on
what it can't read. `install()` puts this module's reading in its place: right, or one sentence.
"""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from grading.grader.inside.text import clean
from grading.grader.untrusted import Unfit
from grading.grader.untrusted.files import read_file

TIMESTAMP = "timestamp.txt"
EXAMPLE = "2026-11-29T10:00:00+09:00"
CLOCKS_DIFFER = timedelta(minutes=5)  # two machines' clocks may; a time further ahead is a mistake
SIZE = 60  # letters of a time; more is something else, which is not repeated
STAMP_LIMIT = 200  # bytes of timestamp.txt

# Date and time as ISO 8601 has them, then an offset, or the name of a zone after a space.
STAMP = re.compile(
    r"(?P<moment>[\d\-:.,TtWw]+(?: [\d:.,]+)?)\s*(?P<zone>[Zz]|[+-]\d\d(?::?\d\d)?| ?[A-Za-z][\w/+\-]*)?"
)


class TimeError(ValueError):
    """A time that can't be understood; the message is one sentence."""


def zone_named(name):
    """The ZoneInfo of an IANA name, as "Asia/Tokyo"."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise TimeError(f'"{name}" is not a time zone: write a name as "Europe/Berlin" or "UTC".') from None


def read_time(text, zone=None, now=None):
    """The moment that a text names, in UTC, or TimeError. Without an offset it is a time of `zone`."""
    text = str(text).strip()
    if not text:
        raise TimeError(f"the time is empty: write it as {EXAMPLE}.")
    shown = clean(text)
    if len(text) > SIZE:
        raise TimeError(f"{len(text):,} letters are not a time: write it as {EXAMPLE}.")
    found = STAMP.fullmatch(text)
    if not found:
        raise TimeError(f'"{shown}" is not a time: write it as {EXAMPLE}.')
    if not re.search(r"[Tt ]\d", found["moment"]):
        raise TimeError(f'"{shown}" has no time of day: write it as {EXAMPLE}.')
    offset = (found["zone"] or "").strip()
    try:
        named = re.fullmatch(r"[A-Za-z].+", offset)
        moment = datetime.fromisoformat(found["moment"].upper() + ("" if named else offset.upper()))
    except ValueError:
        raise TimeError(f'"{shown}" is not a time: write it as {EXAMPLE}.') from None
    if named:
        moment = moment.replace(tzinfo=_zone_of_stamp(offset))
    elif moment.tzinfo is None:
        if zone is None:
            raise TimeError(f'"{shown}" has no offset: write it as {EXAMPLE}.')
        moment = moment.replace(tzinfo=zone)
    try:
        moment = moment.astimezone(UTC)
    except OverflowError:
        raise TimeError(f'"{shown}" is not a time of this course: write it as {EXAMPLE}.') from None
    if moment > (now or datetime.now(UTC)) + CLOCKS_DIFFER:
        raise TimeError(f'"{shown}" lies in the future: correct the date, or the offset, as in {EXAMPLE}.')
    return moment


def _zone_of_stamp(name):
    """A zone by name. Abbreviations are no names: CST is one zone in Chicago and another in Shanghai."""
    if name.upper() in ("UTC", "GMT"):
        return UTC
    if "/" not in name:
        raise TimeError(f'"{name}" may be any of several zones: write the offset, as in {EXAMPLE}.')
    return zone_named(name)


def write_time(moment, zone=UTC):
    """The text for a file: ISO 8601 with an offset, which nbgrader reads right too."""
    return moment.astimezone(zone).isoformat()


def show_time(moment, zone):
    """A moment for people, in the course's zone."""
    return moment.astimezone(zone).strftime("%Y-%m-%d %H:%M:%S %z")


def course_zone(config):
    """The course's zone: where nbgrader shows times, `c.NbGraderAPI.timezone`; UTC where it is not set."""
    return zone_named(str(config.get("NbGraderAPI", {}).get("timezone", "UTC") or "UTC"))


def time_in(folder):
    """The moment in a folder's timestamp.txt, None where there is none; TimeError where it can't be read.

    Without an offset it is UTC: so nbgrader's own zip_collect writes it.
    """
    try:
        text = read_file(Path(folder) / TIMESTAMP, STAMP_LIMIT).decode("utf-8-sig")
    except FileNotFoundError:
        return None
    except Unfit as error:  # a link, a pipe, a large file: no time is taken from there
        what = str(error).partition(":")[0]
        raise TimeError(f"{TIMESTAMP} {what}: write the time into it as {EXAMPLE}.") from None
    except UnicodeDecodeError:
        raise TimeError(f"{TIMESTAMP} can't be read: write the time into it as {EXAMPLE}.") from None
    return read_time(text, zone=UTC)


def existing_timestamp(coursedir, dest_path):
    """What `CourseDirectory.get_existing_timestamp` should return: naive UTC, or None after a sentence."""
    try:
        moment = time_in(dest_path)
    except TimeError as error:
        where = "/".join((*Path(dest_path).parts[-2:], TIMESTAMP))  # student and assignment; the rest may be a copy's
        until = "Until then an earlier time in the gradebook counts; without one, it is on time."
        coursedir.log.error("%s: %s %s", where, error, until)
        return None
    return moment and moment.replace(tzinfo=None)


def install():
    """Let nbgrader read timestamp.txt by `time_in`: it has no setting for that."""
    from nbgrader.coursedir import CourseDirectory

    CourseDirectory.get_existing_timestamp = existing_timestamp
