"""The demo: an instructor's whole week on a class of 30, and a second run that changes nothing."""

import sys

import pytest

pytest.importorskip("nbgrader")

from course_in_nbgrader import Course  # noqa: E402

from grading.demo import command, forked  # noqa: E402

pytestmark = pytest.mark.proof

SHOUT = """import os, sys
print(sys.argv[1:], os.getcwd(), sys.path[0], __name__)
print("on standard error", file=sys.stderr)
sys.exit(7)
"""


@pytest.fixture(scope="module")
def week(tmp_path_factory):
    """The demo, run once; its exam is a handful of tests, so what is expected of the whole exam does not hold."""
    made = command.Demo(tmp_path_factory.mktemp("demo") / "build")
    Course(made.course)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command.made_up, "disagreements", lambda known, results: ())
        made.run()
    return made


def test_everybody_who_could_be_graded_has_a_mark(week):
    rows = {row.student: row for row in week.standing().rows}
    assert len(rows) == len(command.made_up.CLASS) + len(command.made_up.ABSENT)
    graded = set(week.results())
    assert set(command.WRITERS) - graded == {"sven"}  # a zip that is cut off
    assert all(rows[student].mark is not None for student in graded)
    assert rows["hugo"].penalty > 0 and rows["aada"].penalty == 0


def test_the_two_answers_with_a_comment_are_in_the_feedback(week):
    pages = [path.read_text(encoding="utf-8") for path in (week.course / "feedback").rglob("*.html")]
    assert len(pages) == len(week.results())
    assert sum(page.count(command.COMMENT) for page in pages) == command.COMMENTED


def test_exports_report_and_bundle_are_there(week):
    for name in ("exports/canvas.csv", "exports/moodle.csv", "exports/grades.csv"):
        assert "Virtanen" in (week.course / name).read_text(encoding="utf-8")
    assert "data:image/svg+xml" in (week.folder / "report.html").read_text(encoding="utf-8")
    assert list(week.bundle.rglob("*.zip"))


def test_a_second_run_changes_nothing(week, monkeypatch, capsys):
    monkeypatch.setattr(command.made_up, "disagreements", lambda known, results: ())
    week.run()
    assert "Nothing has changed since the last run" in capsys.readouterr().out


def test_a_change_between_two_runs_is_named(week):
    with (week.course / "exports" / "canvas.csv").open("a", encoding="utf-8") as file:
        file.write("one more line")
    with pytest.raises(command.DemoFailed, match="exports/canvas.csv"):
        week.compared()


def test_a_grade_that_is_not_as_expected_stops_the_demo(week, monkeypatch):
    monkeypatch.setattr(week, "steps", lambda: ())  # a handful of tests give no 100 points
    with pytest.raises(command.DemoFailed, match="aada: .* points of the core, not 100"):
        week.run()


def test_a_step_that_fails_is_named_with_its_exit_code(tmp_path, monkeypatch):
    failing = command.Demo(tmp_path)
    monkeypatch.setattr(failing, "steps", lambda: (("jump", lambda: 3, (0,)),))
    with pytest.raises(command.DemoFailed, match="'jump' ended with exit code 3"):
        failing.run()


LOG = """
$ python -m nbgrader first
[FirstApp | ERROR] of the command before
$ python -m nbgrader autograde week06
[AutogradeApp | INFO] Copying
{said}
[AutogradeApp | WARNING] Removing failed assignment
[AutogradeApp | ERROR] There was an error processing assignment 'week06' for student 'aada'
[AutogradeApp | ERROR] Please see the the above traceback for details on the specific errors on the above failures.

"""


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("[AutogradeApp | ERROR] nothing is graded: there is no room.", "nothing is graded: there is no room."),
        ("Traceback (most recent call last):\n  File x\n    ValueError: seven", "ValueError: seven"),
        ("", "it said nothing."),
    ],
)
def test_a_command_that_fails_is_quoted_with_its_own_last_sentence(said, words):
    assert command.last_words(LOG.format(said=said)) == words


def test_a_failing_step_says_why_and_sends_nobody_to_a_log(tmp_path, monkeypatch):
    failing = command.Demo(tmp_path)
    broken = (*command.OURS, "export", "--course", tmp_path / "nowhere")
    monkeypatch.setattr(failing, "steps", lambda: (("export", broken, (0,)),))
    with pytest.raises(command.DemoFailed) as failed:
        failing.run()
    assert "nowhere is no course folder" in str(failed.value) and "log" not in str(failed.value)


def test_without_walls_the_demo_says_so_first_and_grades_only_its_own_class_so(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(command.preflight, "walls", lambda: "this is a test")
    open_air = command.Demo(tmp_path)
    unsandboxed = {title: "--WeekAutograde.sandboxed=False" in map(str, words) for title, words, _ in open_air.steps()
                   if not callable(words)}  # fmt: skip
    assert [title for title, without in unsandboxed.items() if without] == ["autograde"]
    monkeypatch.setattr(open_air, "steps", lambda: (("jump", lambda: print("jumped") or 3, (0,)),))
    with pytest.raises(command.DemoFailed):
        open_air.run()
    assert capsys.readouterr().out.splitlines()[0] == f"{command.UNSANDBOXED}: this is a test."


@pytest.mark.parametrize(("system", "name"), [("darwin", "macOS"), ("win32", "Windows")])
def test_on_another_system_the_demo_names_it_before_its_first_step(tmp_path, monkeypatch, capsys, system, name):
    monkeypatch.setattr(sys, "platform", system)
    elsewhere = command.Demo(tmp_path)
    monkeypatch.setattr(elsewhere, "steps", lambda: (("jump", lambda: print("jumped") or 3, (0,)),))
    with pytest.raises(command.DemoFailed):
        elsewhere.run()
    first, then = capsys.readouterr().out.splitlines()[:2]
    assert first.startswith(command.UNSANDBOXED) and f"this is {name}: grade on Linux" in first and "jump" in then


@pytest.mark.skipif(not forked.CAN_FORK, reason="the demo starts each command anew here")
def test_a_forked_command_is_the_command_itself(tmp_path):
    """Same words, place, output and exit code; and what it does to this process's modules stays in it."""
    said = {}
    for name in ("forked", "anew"):
        place = tmp_path / name
        (place / "shout").mkdir(parents=True)
        (place / "shout" / "__init__.py").write_text("", encoding="utf-8")
        (place / "shout" / "__main__.py").write_text(SHOUT, encoding="utf-8")
        with (tmp_path / f"{name}.txt").open("w", encoding="utf-8") as log:
            words = (sys.executable, "-m", "shout", "a b", 3)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(forked, "CAN_FORK", name == "forked")
                assert forked.run(words, place, log) == 7
        said[name] = (tmp_path / f"{name}.txt").read_text(encoding="utf-8").replace(str(place), "PLACE")
    assert said["forked"] == said["anew"] != ""
    assert "shout" not in sys.modules


def test_the_table_repeats_that_there_were_no_walls():
    class Nobody:
        rows = ()

    *_, last = command.table({"aada": {"sandboxed": False}, "bao": {"sandboxed": True}}, Nobody)
    assert last == f"{command.UNSANDBOXED}."
    *_, last = command.table({"aada": {"sandboxed": True}}, Nobody)
    assert "--unsandboxed" not in last
