"""`python -m grading course FOLDER`: a working nbgrader course in a folder of its own."""

import os
import re
import secrets
import shutil
import sys
from pathlib import Path

from grading.authoring.stubs import generate
from grading.paths import EXERCISES as STUBS
from grading.paths import ROOT
from grading.week.course_folder import path_trouble

HELP = "make an nbgrader course in a folder: its configuration, the week's source, a secret"
HERE = ROOT / "grading" / "week" / "course_template"
CONFIG, SECRET = "nbgrader_config.py", "secret.txt"
NAMES_US = (CONFIG, "exporters.py")  # files of the course that hold the path of this repository


def add_arguments(parser):
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="the course's folder; what is there stays")
    parser.add_argument(
        "--exchange", type=Path, metavar="FOLDER", help="nbgrader's exchange, where students on this machine reach it"
    )


def run(args):
    """Make the course; 1 where that can't be done."""
    if trouble := path_trouble(args.folder):
        print(trouble, file=sys.stderr)
        return 1
    try:
        set_up(args.folder, args.exchange)
    except OSError as error:
        print(f"The course can't be made in {args.folder}: {error.filename}: {error.strerror}.", file=sys.stderr)
        return 1
    if args.folder.stat().st_mode & 0o007:
        print(f"Others on this machine can read solutions and feedback there: run  chmod o= {args.folder}")
    print(f"The course is in {args.folder}: go there and run  nbgrader generate_assignment week06")
    return 0


def set_up(folder, exchange=None):
    """Write configuration, source and secret into `folder`. Settings, a secret and submissions that are there stay.

    `exchange` is where nbgrader's exchange is to be, else it stays where the settings say.
    """
    folder = Path(folder).absolute()
    if not folder.exists():
        folder.mkdir(parents=True)
        folder.chmod(0o700)  # solutions, submissions and feedback are nobody else's
    source = folder / "source" / "week06"
    if folder != HERE:
        for name in NAMES_US:
            there = folder / name  # with the instructor's own settings
            there.write_text(with_our_path(there if there.exists() else HERE / name), encoding="utf-8")
        source.mkdir(parents=True, exist_ok=True)
        shutil.copy(HERE / "source" / "week06" / "week06.ipynb", source)
    if exchange:
        _use_exchange(folder / CONFIG, exchange.absolute())
    exercises = source / STUBS.name
    exercises.mkdir(exist_ok=True)
    for name, text in generate().items():  # from the reference: what was solved in this copy is not released
        (exercises / name).write_text(text, encoding="utf-8", newline="\n")
    _make_secret(folder / SECRET)


def with_our_path(file):
    """One of those files, with the path of this repository."""
    text = file.read_text(encoding="utf-8")
    return re.sub(r"^REPOSITORY = .*$", lambda _: f"REPOSITORY = Path({str(ROOT)!r})", text, flags=re.MULTILINE)


def _use_exchange(config, exchange):
    """Name the exchange's folder in the configuration, and make it: all may write, none may take away another's."""
    if not exchange.is_dir():
        exchange.mkdir(parents=True)
        exchange.chmod(0o1777)
    line, text = f"c.Exchange.root = {str(exchange)!r}", config.read_text(encoding="utf-8")
    text, found = re.subn(r"^c\.Exchange\.root = .*$", lambda _: line, text, flags=re.MULTILINE)
    config.write_text(text if found else f"{text.rstrip()}\n{line}\n", encoding="utf-8")


def _make_secret(path):
    if path.exists():
        return
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as stream:
        stream.write(f"{secrets.token_hex(32)}\n")
