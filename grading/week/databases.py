"""The gradebook's databases: SQLite by default, PostgreSQL by URL, and one sentence where one can't be used.

`install()` is called by nbgrader_config.py, so that every nbgrader command has it:
 - SQLite waits 90 seconds for another writer (5 by default), so that a lock of a minute costs nobody's marks;
 - `postgresql://` means psycopg2, which is what the course installs (SQLAlchemy would look for psycopg 3);
 - where the database can't be used, nbgrader's log has one sentence in place of a traceback.
"""

import logging
import os
import shutil
import sys
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from urllib.parse import unquote

from sqlalchemy import event
from sqlalchemy.dialects import registry
from sqlalchemy.engine import Engine, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, OperationalError, SQLAlchemyError

LOCK_SECONDS = 90  # how long SQLite waits for another writer; "?timeout=" in the URL says otherwise
CONNECT_SECONDS = 10  # how long PostgreSQL's server may take to answer
AGAIN = "Nothing that was saved is lost: the same command goes on from there."


class DatabaseError(Exception):
    """The gradebook can't be used; the message is one sentence with what to do."""


def install():
    """Set these rules for every engine of this process. Calling it twice is the same as once."""
    for name in ("postgresql", "postgres"):
        registry.register(name, "sqlalchemy.dialects.postgresql.psycopg2", "PGDialect_psycopg2")
    if not event.contains(Engine, "do_connect", _patiently):
        event.listen(Engine, "do_connect", _patiently)
    _in_any_path()
    _upgrade_in_any_path()
    from nbgrader import apps

    for name in (*apps.__all__, "tornado.application"):  # nbgrader's gradebook logs as tornado
        log = logging.getLogger(name)
        if _plainly not in log.filters:
            log.addFilter(_plainly)


def url_of(file):
    """The URL of an SQLite file, as nbgrader writes it, where the path has no sign that means something in a URL."""
    return "sqlite:///" + str(file).replace("%", "%25").replace("?", "%3F")


def unreachable(url):
    """Why a PostgreSQL server does not let us in; "" where it does, and for SQLite, which has none."""
    from sqlalchemy import create_engine

    install()
    try:
        if make_url(url).get_backend_name() != "postgresql":
            return ""
        with sentences(url):
            create_engine(url).connect().close()
    except (DatabaseError, ArgumentError) as error:
        return str(error) if isinstance(error, DatabaseError) else sentence(error, url)
    return ""


def _patiently(dialect, record, arguments, keywords):
    """SQLAlchemy's hook before each connection."""
    if dialect.name == "sqlite":
        keywords.setdefault("timeout", LOCK_SECONDS)
    elif dialect.name == "postgresql":
        keywords.setdefault("connect_timeout", CONNECT_SECONDS)


def _in_any_path():
    """Let nbgrader and alembic, the program that knows the versions of its tables, find each other wherever they lie.

    For a new gradebook nbgrader starts it by name, which need not be on the path, with a file that gives % a meaning:
    its version can be asked here. `nbgrader db upgrade` starts it all the same.
    """
    from alembic.script import ScriptDirectory
    from nbgrader import api, dbutil

    scripts = dbutil.ALEMBIC_DIR.replace("%%", "%")
    dbutil.ALEMBIC_DIR = scripts.replace("%", "%%")
    api.get_alembic_version = ScriptDirectory(scripts).get_current_head
    if shutil.which("alembic") is None:
        os.environ["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))


@cache
def _upgrade_in_any_path():
    """`nbgrader db upgrade` takes a URL for a path, and alembic's file gives the % of one a meaning of its own."""
    from nbgrader import dbutil
    from nbgrader.apps.dbapp import DbUpgradeApp

    back_up, upgrade = DbUpgradeApp._backup_db_file, dbutil.upgrade
    DbUpgradeApp._backup_db_file = lambda app, file: back_up(app, unquote(file))
    dbutil.upgrade = lambda url, revision="head": upgrade(url.replace("%", "%%"), revision)


def _plainly(record):
    """A logging filter: nbgrader logs a traceback, then advice for another problem; say what it is instead."""
    message = record.getMessage()
    if message.startswith("There was an error accessing the nbgrader database."):
        return False
    error = _behind(sys.exc_info()[1])
    if error is not None and (message.startswith("Traceback") or record.exc_info):
        record.msg, record.args, record.exc_info = sentence(error), (), None
    return True


def _behind(error):
    """The database's own error behind an exception, or None; nbgrader wraps some into its InvalidEntry."""
    while error is not None and not isinstance(error, OperationalError):
        error = error.__cause__ or error.__context__
    return error


def sentence(error, url=""):
    """What is wrong with the database, in words, and what to do."""
    said = str(getattr(error, "orig", None) or error).strip().split("\n")[0]
    lower = said.lower()
    where = f"The gradebook{f' {shown(url)}' if url else ''}"
    if "database is locked" in lower or "lock timeout" in lower:
        return f"{where} is locked by another program: close it, or wait for it. {AGAIN}"
    if "disk is full" in lower or "disk i/o error" in lower or "no space left" in lower:
        return f"{where} can't be written, the disk is full or damaged: make room. {AGAIN}"
    if "readonly" in lower or "read-only" in lower or "unable to open" in lower or "permission denied" in lower:
        return f"{where} can't be opened for writing ({said}): check the folder and its permissions. {AGAIN}"
    if "not a database" in lower or "malformed" in lower:
        return f"{where} is no sound database ({said}): put it aside and bring back a copy of it. {AGAIN}"
    if isinstance(error, (ArgumentError, NoSuchModuleError)):
        return f'{where} has no usable address: write c.CourseDirectory.db_url as "postgresql://user@host/name".'
    if isinstance(error, DBAPIError) and "psycopg" in type(error.orig).__module__:
        return f"{where} does not answer ({said}): is the PostgreSQL server up, and the address right? {AGAIN}"
    return f"{where} can't be used ({said}): see that its server or file is there. {AGAIN}"


def shown(url):
    """A database's address without its password."""
    try:
        return make_url(url).render_as_string(hide_password=True)
    except ArgumentError:
        return "at an address that can't be read"


@contextmanager
def sentences(url=""):
    """Turn what goes wrong with the database inside into a DatabaseError."""
    from nbgrader.api import InvalidEntry

    try:
        yield
    except SQLAlchemyError as error:
        raise DatabaseError(sentence(error, url)) from None
    except InvalidEntry as error:
        if _behind(error) is None:
            raise
        raise DatabaseError(sentence(_behind(error), url)) from None
    except ModuleNotFoundError as error:
        raise DatabaseError(f"{shown(url)} needs the package {error.name}: install it, or correct the URL.") from None


@contextmanager
def open_gradebook(url, course_id=""):
    """nbgrader's Gradebook under these rules, closed at the end; DatabaseError where it can't be used."""
    install()
    from nbgrader.api import Gradebook

    with sentences(url):
        gradebook = Gradebook(url, course_id)
        try:
            yield gradebook
        finally:
            gradebook.close()
