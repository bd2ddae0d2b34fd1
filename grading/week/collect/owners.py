"""Whose folder it is, asked of the file system: in nbgrader's exchange anybody can make a folder of any name."""

import os

try:
    import pwd
except ImportError:  # Windows has no owners of this kind; nbgrader's exchange does not work there either
    pwd = None


def user_number(folder):
    """The user whom a folder belongs to, by number."""
    return os.lstat(folder).st_uid


def asks_owners(config):
    """Whether the course's configuration wants it; nbgrader's own setting says so, and does by default."""
    return all(config.get(name, {}).get("check_owner", True) for name in ("ExchangeCollect", "WeekExchangeCollect"))


def owner_trouble(folder, student):
    """(whether the file system knows, why a folder can't be this student's): a half-sentence, or empty.

    What belongs to the account that collects was put there by the instructor, who may do so.
    """
    if pwd is None or folder is None:
        return False, ""
    number = user_number(folder)
    if number == os.geteuid():
        return False, ""
    try:
        owner = pwd.getpwuid(number).pw_name
    except KeyError:
        owner = f"user number {number}, who has no name here"
    return True, "" if owner == student else f"says that it is {student}'s but belongs to {owner}"
