"""A small nbgrader course and submissions for the tests of collecting, times, penalties and databases."""

import io
import json
import logging
import multiprocessing
import os
import shutil
import sys
import tempfile
import zipfile

from grading.week.databases import open_gradebook

FORK = multiprocessing.get_context("fork")
CODE = b"import torch\n\nx = 1\n"
NOTEBOOK = json.dumps({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()
WORK = {"week06.ipynb": NOTEBOOK, "exercises_en/modules.py": CODE, "exercises_en/rope.py": CODE + b"y = 2\n"}
ROSTER = (
    ("ada", "Ada", "Lovelace", "ada@example.org", "1001"),
    ("grace", "Grace", "Hopper", "grace@example.org", "1002"),
    ("kurt", "Kurt", "Gödel", "kurt@example.org", "1003"),
)
CONFIG = """
c = get_config()
c.CourseDirectory.course_id = "course"
c.NbGraderAPI.timezone = "Asia/Tokyo"
"""


def template(folder):
    """A course folder with a gradebook that knows ROSTER."""
    folder.mkdir()
    (folder / "nbgrader_config.py").write_text(CONFIG, encoding="utf-8")
    with open_gradebook(f"sqlite:///{folder}/gradebook.db", "course") as gradebook:
        for student, first, last, email, lms in ROSTER:
            gradebook.add_student(student, first_name=first, last_name=last, email=email, lms_user_id=lms)
    return folder


def copy_of(course, folder):
    """A copy of a course for one test."""
    return shutil.copytree(course, folder)


def write_tree(folder, files):
    """Write {path: bytes} below a folder."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def zipped(files, top=""):
    """{path: bytes} as the bytes of a zip; a ZipInfo may stand for a path."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name if isinstance(name, zipfile.ZipInfo) else f"{top}{name}", data)
    return stream.getvalue()


def below(top, files):
    """The same files below a folder."""
    return {f"{top}/{name}": data for name, data in files.items()}


def tree(folder):
    """{path: bytes} of all files of a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def said(rows, who):
    """All that the table says about somebody."""
    return " | ".join(f"{what}: {do}" for what, do in rows.get(who, ()))


def nbgrader(course, *arguments, env=None):
    """Run an nbgrader command in a course folder, in a fork that has nbgrader imported; (exit code, what it said)."""
    import nbgrader.apps.nbgraderapp  # noqa: F401  once, before the fork

    with tempfile.TemporaryFile() as said:
        child = FORK.Process(target=_command, args=(course, arguments, env or {}, said.fileno()))
        child.start()
        child.join(600)
        if child.is_alive():
            child.kill()
            child.join()
        said.seek(0)
        return child.exitcode, said.read().decode("utf-8", "replace")


def _command(course, arguments, env, said):
    os.dup2(said, 1)
    os.dup2(said, 2)
    sys.stdout, sys.stderr = (os.fdopen(end, "w", encoding="utf-8", buffering=1) for end in (1, 2))
    os.environ.update(env)
    os.chdir(course)
    sys.argv = ["nbgrader", *arguments]
    logging.getLogger().handlers.clear()  # pytest's, which would hold what is said
    from nbgrader import converters
    from nbgrader.apps import autogradeapp, nbgraderapp

    autogradeapp.Autograde = converters.Autograde  # another test's course may have put its own there
    nbgraderapp.NbGraderApp.launch_instance(list(arguments))
