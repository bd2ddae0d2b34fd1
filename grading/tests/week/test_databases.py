"""The gradebook survives ten writers, a lock, a full disk and a server that is away: nothing lost, one sentence."""

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

pytest.importorskip("nbgrader")

import postgres
from courses import CONFIG, FORK, copy_of, nbgrader, write_tree
from nbformat import v4, writes
from sqlalchemy import create_engine, text

from grading import preflight
from grading.__main__ import main
from grading.grader import doctor
from grading.paths import ROOT
from grading.week import databases
from grading.week.databases import DatabaseError, open_gradebook

pytestmark = pytest.mark.proof

WRITERS, CELLS = 10, 5
LOCK = "The gradebook is locked by another program"


@pytest.fixture(scope="module")
def server():
    """The private PostgreSQL server; below /tmp, where the user that it runs as may look."""
    why = preflight.postgresql()
    if why:
        pytest.skip(why)
    with tempfile.TemporaryDirectory(dir="/tmp") as folder, postgres.server(folder) as running:
        databases.install()
        with create_engine(running.url(), isolation_level="AUTOCOMMIT").connect() as connection:
            connection.execute(text("CREATE DATABASE gradebook"))
        with open_gradebook(running.url("gradebook"), "course"):  # takes seconds; others are copies of it
            pass
        yield running


def a_database(server, name):
    """The address of a new gradebook on the server."""
    with create_engine(server.url(), isolation_level="AUTOCOMMIT").connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name} TEMPLATE gradebook"))
    return server.url(name)


@pytest.fixture
def sqlite_url(small_course, tmp_path):
    return f"sqlite:///{copy_of(small_course, tmp_path / 'course')}/gradebook.db"


@pytest.fixture
def url(request, small_course, tmp_path):
    """The address of a gradebook with one assignment, on SQLite or PostgreSQL."""
    if request.param == "sqlite":
        address = f"sqlite:///{copy_of(small_course, tmp_path / 'course')}/gradebook.db"
    else:
        address = a_database(request.getfixturevalue("server"), "writers")
    with open_gradebook(address, "course") as gradebook:
        gradebook.add_assignment("week06")
        gradebook.add_notebook("week06", "week06")
        for cell in range(CELLS):
            gradebook.add_grade_cell(f"part{cell}", "week06", "week06", max_score=10, cell_type="code")
    return address


def write_marks(url, number, gate):
    """One writer: a student of its own with a mark for each cell, through nbgrader's gradebook."""
    gate.wait(30)
    student = f"student{number}"
    with open_gradebook(url, "course") as gradebook:
        gradebook.update_or_create_student(student)
        gradebook.update_or_create_submission("week06", student)
    for cell in range(CELLS):
        with open_gradebook(url, "course") as gradebook:
            gradebook.find_grade(f"part{cell}", "week06", "week06", student).auto_score = number + cell / 10
            gradebook.db.commit()


def marks(url):
    """{(student, cell): score} of all marks."""
    with open_gradebook(url, "course") as gradebook:
        submissions = gradebook.assignment_submissions("week06")
        return {
            (submission.student.id, grade.name): grade.auto_score
            for submission in submissions
            for notebook in submission.notebooks
            for grade in notebook.grades
        }


@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
def test_ten_writers_at_once_lose_nothing(url):
    gate = FORK.Barrier(WRITERS)
    writers = [FORK.Process(target=write_marks, args=(url, number, gate)) for number in range(WRITERS)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(600)
    assert [writer.exitcode for writer in writers] == [0] * WRITERS
    expected = {(f"student{n}", f"part{cell}"): n + cell / 10 for n in range(WRITERS) for cell in range(CELLS)}
    assert marks(url) == pytest.approx(expected)


def test_a_lock_of_a_minute_is_waited_for(sqlite_url):
    assert databases.LOCK_SECONDS > 60
    with open_gradebook(sqlite_url) as gradebook:
        assert gradebook.db.execute(text("PRAGMA busy_timeout")).scalar() == databases.LOCK_SECONDS * 1000


@pytest.fixture
def locked():
    """Lock a SQLite file as another program would; returns how to let go."""
    held = []

    def lock(file):
        connection = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
        connection.execute("BEGIN EXCLUSIVE")
        held.append(connection)
        return connection.close

    yield lock
    for connection in held:
        connection.close()


def test_a_writer_waits_for_a_lock_and_then_writes(sqlite_url, locked):
    let_go = locked(sqlite_url.removeprefix("sqlite:///"))
    is_free = threading.Event()

    def let_go_later():
        time.sleep(6)  # longer than SQLite's own 5 seconds
        is_free.set()
        let_go()

    waiting = threading.Thread(target=let_go_later)
    waiting.start()
    with open_gradebook(sqlite_url, "course") as gradebook:
        gradebook.add_student("late")
    assert is_free.is_set()
    waiting.join()
    with open_gradebook(sqlite_url, "course") as gradebook:
        assert gradebook.find_student("late").id == "late"


def test_a_longer_lock_is_a_sentence_and_the_same_call_goes_on_afterwards(sqlite_url, locked):
    url = f"{sqlite_url}?timeout=0.3"
    let_go = locked(sqlite_url.removeprefix("sqlite:///"))
    with pytest.raises(DatabaseError, match=r"locked by another program: close it, or wait for it\. Nothing that was"):
        with open_gradebook(url, "course") as gradebook:
            gradebook.add_student("late")
    let_go()
    with open_gradebook(url, "course") as gradebook:
        gradebook.add_student("late")


def graded_notebook():
    """A notebook with one cell of 3 points; nothing runs, so the cell has them."""
    mark = {
        "grade": True, "grade_id": "part", "locked": True, "points": 3, "schema_version": 3, "solution": False,
        "task": False, "cell_type": "code",
    }  # fmt: skip
    return writes(v4.new_notebook(cells=[v4.new_code_cell("assert True", metadata={"nbgrader": mark})])).encode()


SETTINGS = f"""
import os, sys
sys.path.insert(0, {str(ROOT)!r})
from grading.week import databases, times
databases.install()
times.install()
if "TEST_DB" in os.environ:
    c.CourseDirectory.db_url = os.environ["TEST_DB"]
c.Autograde.autograde_preprocessors = ["nbgrader.preprocessors.SaveAutoGrades"]
"""


@pytest.fixture
def released(small_course, tmp_path):
    """A course with one submission, and generate_assignment done by the caller."""
    course = copy_of(small_course, tmp_path / "released")
    (course / "nbgrader_config.py").write_text(CONFIG + SETTINGS, encoding="utf-8")
    notebook = graded_notebook()
    write_tree(course, {"source/week06/week06.ipynb": notebook, "submitted/ada/week06/week06.ipynb": notebook})
    return course


def score(url):
    with open_gradebook(url, "course") as gradebook:
        return gradebook.find_submission("week06", "ada").score


def test_nbgrader_says_that_the_gradebook_is_locked_and_the_same_command_goes_on(released, locked):
    code, said = nbgrader(released, "generate_assignment", "week06")
    assert code == 0, said
    short = {"TEST_DB": f"sqlite:///{released}/gradebook.db?timeout=0.3"}
    let_go = locked(released / "gradebook.db")
    code, said = nbgrader(released, "autograde", "week06", env=short)
    assert code == 1 and LOCK in said
    assert "Traceback" not in said and "db upgrade" not in said
    assert not (released / "autograded/ada/week06").exists()
    let_go()
    code, said = nbgrader(released, "autograde", "week06", env=short)
    assert code == 0, said
    assert score(short["TEST_DB"]) == 3


def test_nbgrader_grades_into_postgresql_and_says_when_the_server_is_away(released, server):
    url = {"TEST_DB": a_database(server, "course")}
    assert nbgrader(released, "generate_assignment", "week06", env=url)[0] == 0
    server.stop()
    try:
        code, said = nbgrader(released, "autograde", "week06", env=url)
    finally:
        server.start()
    assert code == 1 and "does not answer" in said and "is the PostgreSQL server up" in said
    assert "Traceback" not in said and server.password not in said
    code, said = nbgrader(released, "autograde", "week06", env=url)
    assert code == 0, said
    assert score(url["TEST_DB"]) == 3


def test_a_wrong_password_or_name_is_a_sentence_that_shows_no_password(server):
    for url in (server.url(password="wrong-secret"), server.url("nowhere")):
        with pytest.raises(DatabaseError, match="does not answer") as error, open_gradebook(url):
            pass
        assert "wrong-secret" not in str(error.value) and server.password not in str(error.value)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("postgresql://nobody@127.0.0.1:1/x", "does not answer"),
        ("sqlite:////nowhere/gradebook.db", "can't be opened for writing"),
        ("oracle9://x", "has no usable address"),
        ("no address", "has no usable address"),
        ("mysql://user@host/x", "needs the package MySQLdb"),
    ],
)
def test_an_address_that_leads_nowhere_is_a_sentence(url, words):
    with pytest.raises(DatabaseError, match=words), open_gradebook(url):
        pass


def test_a_file_that_is_no_database_is_a_sentence(tmp_path):
    (tmp_path / "gradebook.db").write_bytes(b"not a database, but long enough to be looked at" * 100)
    with pytest.raises(DatabaseError, match="no sound database"), open_gradebook(f"sqlite:///{tmp_path}/gradebook.db"):
        pass


def test_the_doctor_says_whether_the_gradebook_can_be_used(small_course, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(doctor, "no_walls", lambda: "none")  # the other lines take seconds
    course = copy_of(small_course, tmp_path / "course")
    assert doctor.gradebook(course) == (True, f"sqlite:///{course}/gradebook.db, 3 students")
    (course / "gradebook.db").write_bytes(b"no database" * 1000)
    active, sentence = doctor.gradebook(course)
    assert not active and "is no sound database" in sentence
    assert main(["doctor", "--course", str(course)]) == 1
    assert f"gradebook     MISSING  {sentence}" in capsys.readouterr().out


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 4 MB, where this machine lets us mount one."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = shutil.which("mount")
    done = mount and subprocess.run([mount, "-t", "tmpfs", "-o", "size=4m", "tmpfs", place], capture_output=True)
    if not done or done.returncode:
        pytest.skip("no small disk can be mounted here (it takes root)")
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)


def fill(place):
    """Take all room on a disk; returns how to give it back."""
    filler = place / "filler"
    with filler.open("wb", buffering=0) as stream, suppress(OSError):
        while True:
            stream.write(b"\0" * 4096)
    return filler.unlink


def test_on_a_full_disk_no_mark_is_lost_and_the_same_call_goes_on(small_course, small_disk, caplog):
    course = copy_of(small_course, small_disk / "course")
    url = f"sqlite:///{course}/gradebook.db"
    with open_gradebook(url, "course") as gradebook:
        gradebook.add_assignment("before")
    free = fill(small_disk)
    with pytest.raises(DatabaseError, match="the disk is full or damaged: make room"):
        with open_gradebook(url, "course") as gradebook:
            for number in range(200):
                gradebook.add_assignment(f"week{number:02}")
    assert "Traceback" not in caplog.text
    free()
    with open_gradebook(url, "course") as gradebook:
        gradebook.add_assignment("after")
        assert {"before", "after"} <= {assignment.name for assignment in gradebook.assignments}


def test_on_a_disk_that_is_full_from_the_start_collecting_does_not_begin(small_course, small_disk, tmp_path, capsys):
    course = copy_of(small_course, small_disk / "course")
    assert main(["collect", str(tmp_path), "--course", str(course)]) != 0
    assert f"collect can't begin: {course} has 0.0 GB left, and 0.5 GB are needed" in capsys.readouterr().err


def test_when_the_disk_fills_up_collecting_stops_with_a_sentence_and_goes_on(
    small_course, small_disk, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(preflight, "missing", lambda command, args=None: [])  # there was room when it began
    course = copy_of(small_course, small_disk / "course")
    files = {f"{who}/exercises_en/modules.py": os.urandom(9000) for who in ("ada", "grace", "kurt")}
    source = write_tree(tmp_path / "source", files)
    free = fill(small_disk)
    assert main(["collect", str(source), "--course", str(course)]) == 1
    said = capsys.readouterr().err
    assert "No space left on device" in said and "The same command goes on from here." in said
    assert not list(course.glob("submitted/*/week06")) and not list(course.glob("submitted/.collect-*"))
    free()
    main(["collect", str(source), "--course", str(course)])
    held = {path.read_bytes() for path in course.glob("submitted/*/week06/exercises_en/modules.py")}
    assert held == set(files.values())


def test_the_tables_of_a_gradebook_in_any_path_are_brought_up_to_date(tmp_path):
    course = tmp_path / "50%41 (ü) #1"
    assert main(["course", str(course)]) == 0
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    for words in (("db", "student", "add", "ada"), ("db", "upgrade")):
        run = subprocess.run(
            [sys.executable, "-m", "nbgrader", *words], cwd=course, env=env, capture_output=True, encoding="utf-8"
        )  # fmt: skip
        assert run.returncode == 0, run.stderr
    assert len(list(course.glob("gradebook.db.*"))) == 1 and not list(tmp_path.glob("*.db*"))
    with open_gradebook(databases.url_of(course / "gradebook.db"), "nanolm") as gradebook:
        assert [student.id for student in gradebook.students] == ["ada"]
