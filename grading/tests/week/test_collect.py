"""Everything that platforms and students hand in ends under fixed names, or in the table with a sentence."""

import stat
import unicodedata
import zipfile

import pytest

pytest.importorskip("nbgrader")

from courses import CODE, NOTEBOOK, ROSTER, WORK, below, copy_of, said, tree, zipped

from grading.__main__ import main

GODEL_APART = unicodedata.normalize("NFD", "Gödel")


LAYOUTS = {
    "folders": {**below("ada", WORK), **below("grace/week06", WORK), **below("Gödel, Kurt", WORK)},
    "folders in a wrapper": below("submissions", {**below("ada", WORK), **below("grace", WORK), **below("kurt", WORK)}),
    "canvas files": {
        **{f"lovelaceada_1001_{n}_{name.split('/')[-1]}": data for n, (name, data) in enumerate(WORK.items(), 77)},
        **{f"hoppergrace_LATE_1002_8{n}_{x.split('/')[-1]}": data for n, (x, data) in enumerate(WORK.items())},
        **{f"gödelkurt_1003_9{n}_{name.split('/')[-1]}": data for n, (name, data) in enumerate(WORK.items())},
    },
    "canvas zips": {
        "lovelaceada_1001_5_week06.zip": zipped(WORK),
        "hoppergrace_LATE_1002_6_week06-1.zip": zipped(WORK, "week06/"),
        "someoneelse_1003_7_my work.zip": zipped(WORK, "a/b/c/"),
    },
    "canvas in one zip": {
        "submissions.zip": zipped(
            {
                "lovelaceada_1001_5_week06.zip": zipped(WORK),
                "hoppergrace_LATE_1002_6_week06-1.zip": zipped(WORK),
                "godelkurt_1003_7_week06.zip": zipped(WORK),
            }
        )
    },
    "moodle folders": {
        **below("Ada Lovelace_553_assignsubmission_file_", WORK),
        **below("Grace Hopper_554_assignsubmission_file", WORK),
        "Kurt Gödel_555_assignsubmission_file_/week06.zip": zipped(WORK),
        "Kurt Gödel_555_assignsubmission_onlinetext_/onlinetext.html": b"<p>done</p>",
    },
    "moodle files": {
        "Ada Lovelace_553_assignsubmission_file_week06.zip": zipped(WORK),
        "Grace Hopper_554_assignsubmission_file_week06.zip": zipped(WORK),
        f"Kurt {GODEL_APART}_555_assignsubmission_file_week06.zip": zipped(WORK),
    },
    "zips of students": {f"{name}.zip": zipped(WORK) for name in ("ada", "grace@example.org", "Kurt Godel")},
    "exchange": {
        name: data
        for student in ("ada", "grace", "kurt")
        for name, data in below(f"{student}+week06+2026-01-10 10:00:00.123456 UTC+cm9i", WORK).items()
    },
    "blackboard": {
        f"Week 06_{student}_attempt_2026-01-10-10-00-00{rest}": data
        for student in ("ada", "grace", "kurt")
        for rest, data in {"_week06.zip": zipped(WORK), ".txt": b"Name: x"}.items()
    },
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_every_students_files_under_fixed_names(collect, layout):
    code, submitted, rows, out = collect(LAYOUTS[layout])
    assert code == 0, out
    assert set(submitted) == {"ada", "grace", "kurt"}
    for files in submitted.values():
        assert {name: data for name, data in files.items() if name != "timestamp.txt"} == WORK
    assert "3 collected (3 new)" in out


@pytest.mark.parametrize(
    ("layout", "stamp"), [("exchange", "2026-01-10T10:00:00.123456+00:00"), ("blackboard", "2026-01-10T01:00:00+00:00")]
)
def test_a_time_in_the_name_is_kept_with_its_offset(collect, layout, stamp):
    _, submitted, _, _ = collect(LAYOUTS[layout])
    assert submitted["ada"]["timestamp.txt"].decode().strip() == stamp


def test_a_second_run_changes_nothing_and_says_so(collect):
    collect(LAYOUTS["moodle folders"])
    before = tree(collect.course)
    times = {path: path.stat().st_mtime_ns for path in (collect.course / "submitted").rglob("*.py")}
    code, _, _, out = collect({})
    assert code == 0 and "3 collected (3 unchanged)" in out
    assert tree(collect.course) == before
    assert {path: path.stat().st_mtime_ns for path in (collect.course / "submitted").rglob("*.py")} == times


def test_what_is_unknown_missing_or_claimed_twice_is_named_and_the_rest_is_collected(collect):
    source = {
        **below("ada", WORK), **below("Grace Hoper", WORK), **below("kurt", WORK), **below("Kurt Gödel", WORK),
        "notes.txt": b"x",
    }  # fmt: skip
    code, submitted, rows, out = collect(source)
    assert code == 1 and set(submitted) == {"ada"}
    assert "not on the roster (is it grace?)" in said(rows, "Grace Hoper")
    assert "2 entries claim to be theirs (Kurt Gödel, kurt): keep one" in said(rows, "kurt")
    assert "handed in nothing" in said(rows, "grace")
    assert "notes.txt: its name says no student" in said(rows, "(source)")
    assert "1 collected (1 new), 2 with something not collected." in out


def test_of_two_attempts_the_latest_counts_and_the_table_says_so(collect):
    old, new = "ada+week06+2026-01-10 10:00:00 UTC", "ada+week06+2026-01-11T10:00:00+09:00"
    later = {**WORK, "exercises_en/modules.py": b"later = 1\n"}
    code, submitted, rows, _ = collect({**below(new, later), **below(old, WORK)})
    assert code == 0 and submitted["ada"]["exercises_en/modules.py"] == b"later = 1\n"
    assert f"the latest counts, {new} (2026-01-11 10:00:00 +0900)" in said(rows, "ada")


def test_a_later_attempt_replaces_and_an_older_one_does_not(collect):
    collect(below("ada+week06+2026-01-10 10:00:00 UTC", WORK))
    for path in sorted(collect.source.rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    later = {**WORK, "exercises_en/modules.py": b"later = 1\n"}
    _, submitted, _, out = collect(below("ada+week06+2026-01-12 10:00:00 UTC", later))
    assert "1 updated" in out and submitted["ada"]["exercises_en/modules.py"] == b"later = 1\n"
    assert tree(collect.course / "replaced/week06/ada/1")["exercises_en/modules.py"] == CODE
    for path in sorted(collect.source.rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    _, submitted, rows, out = collect(below("ada+week06+2026-01-11 10:00:00 UTC", WORK))
    assert "1 kept" in out and submitted["ada"]["exercises_en/modules.py"] == b"later = 1\n"
    assert "is older than what was collected before" in said(rows, "ada")


@pytest.mark.parametrize(
    ("names", "taken"),
    [
        (["week06-1.ipynb", "modules-2.py"], "modules-2.py"),
        (["week06 (1).ipynb", "modules (3).py"], "modules (3).py"),
        (["WEEK06.IPYNB", "Modules.py"], "Modules.py"),
        (["week06 - Copy.ipynb", "modules copy 2.py"], "modules copy 2.py"),
        (["week06.ipynb.txt", "modules.py.txt"], "modules.py.txt"),
        (["final version.ipynb", "modules_1.py"], "modules_1.py"),
    ],
)
def test_names_that_browsers_and_platforms_change_are_understood(collect, names, taken):
    notebook, code = names
    _, submitted, _, _ = collect({f"ada/{notebook}": NOTEBOOK, f"ada/{code}": CODE})
    assert submitted["ada"] == {"week06.ipynb": NOTEBOOK, "exercises_en/modules.py": CODE}


def test_beside_the_exact_name_a_students_copies_are_left_and_named(collect):
    files = {"ada/modules.py": CODE, "ada/modules (1).py": b"old", "ada/week06.ipynb": NOTEBOOK}
    _, submitted, rows, _ = collect(files)
    assert submitted["ada"]["exercises_en/modules.py"] == CODE
    assert "modules.py is there 2 times; modules.py was taken, not modules (1).py" in said(rows, "ada")


def test_of_canvas_files_the_highest_number_is_the_latest(collect):
    names = ("lovelaceada_1001_5_modules.py", "lovelaceada_1001_6_modules-2.py", "lovelaceada_1001_7_modules-10.py")
    _, submitted, rows, _ = collect({name: str(n).encode() for n, name in enumerate(names)})
    assert submitted["ada"]["exercises_en/modules.py"] == b"2"
    assert "modules-10.py was taken" in said(rows, "ada")


def test_the_whole_release_handed_in_is_no_confusion(collect):
    release = {
        **WORK, "nanolm/model/language_model.py": b"theirs", "tests/modules.py": b"x", "notebooks/rope.ipynb": NOTEBOOK,
        "__MACOSX/exercises_en/._modules.py": b"x", ".DS_Store": b"x", "exercises_en/__pycache__/modules.py": b"x",
        "backup/modules.py": b"old",
    }  # fmt: skip
    code, submitted, rows, _ = collect({"ada.zip": zipped(release, "week06/")})
    assert code == 0 and submitted["ada"] == WORK
    assert "week06/exercises_en was taken, not ada/week06/backup" in said(rows, "ada")


def test_two_equal_folders_are_a_question_and_the_notebook_is_still_collected(collect):
    code, submitted, rows, _ = collect({"ada/a/rope.py": CODE, "ada/b/rope.py": CODE, "ada/week06.ipynb": NOTEBOOK})
    assert code == 1 and set(submitted["ada"]) == {"week06.ipynb"}
    assert "several folders hold the week's files (a, b): ask which one counts" in said(rows, "ada")


@pytest.mark.parametrize(
    ("notebook", "words"),
    [
        (b"", "is empty"),
        (b'{"cells": [', "is not JSON (cut short?)"),
        (b"[]", "is JSON, but no notebook"),
        (b"\xff\xfe{", "is not UTF-8 text"),
        (NOTEBOOK + b"\n<<<<<<< HEAD\n", "marks of a merge conflict"),
        (None, "no notebook"),
    ],
)
def test_sound_code_beside_a_broken_or_missing_notebook_is_collected(collect, notebook, words):
    files = {"ada/exercises_en/modules.py": CODE, **({} if notebook is None else {"ada/week06.ipynb": notebook})}
    code, submitted, rows, _ = collect(files)
    assert code == 0 and words in said(rows, "ada")
    assert submitted["ada"]["exercises_en/modules.py"] == CODE
    assert (submitted["ada"]["week06.ipynb"] == notebook) if notebook is not None else submitted["ada"]["week06.ipynb"]


def test_a_code_file_that_the_grader_will_refuse_is_named_at_once(collect):
    _, submitted, rows, _ = collect({"ada/modules.py": b"x = '\xe9'\n", "ada/rope.py": CODE})
    assert "modules.py is not UTF-8 text (byte 5): ask: save it as UTF-8" in said(rows, "ada")
    assert set(submitted["ada"]) >= {"exercises_en/modules.py", "exercises_en/rope.py"}


def link(name):
    info = zipfile.ZipInfo(name)
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


def locked(data):
    """A zip of one stored file with the flag of a password."""
    raw = bytearray(zipped(data))
    for mark, offset in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
        at = raw.find(mark)
        while at >= 0:
            raw[at + offset] |= 1
            at = raw.find(mark, at + 4)
    return bytes(raw)


ODD = {
    "a way out": (zipped({"../../../modules.py": CODE, "rope.py": CODE}), "leads out of"),
    "an absolute path": (zipped({"/etc/modules.py": CODE, "rope.py": CODE}), "leads out of"),
    "a drive": (zipped({"C:\\work\\modules.py": CODE, "rope.py": CODE}), "leads out of"),
    "a link": (zipped({link("modules.py"): b"/etc/passwd", "rope.py": CODE}), "modules.py is a link"),
    "a bomb": (zipped({"modules.py": b"\0" * 30_000_000, "rope.py": CODE}), "modules.py has more than 20 MB"),
    "other archives": (zipped({"work.rar": b"Rar!", "rope.py": CODE}), "work.rar is no .zip file"),
    "zips in zips": (
        zipped({"a.zip": zipped({"b.zip": zipped({"c.zip": zipped({"modules.py": CODE})})}), "rope.py": CODE}),
        "archive in an archive",
    ),
    "a broken zip inside": (zipped({"week06.zip": b"PK\x03\x04 broken", "rope.py": CODE}), "no sound .zip file"),
}


@pytest.mark.parametrize("odd", ODD)
def test_hostile_archives_are_named_and_the_rest_of_them_is_collected(collect, odd, tmp_path):
    archive, words = ODD[odd]
    code, submitted, rows, _ = collect({"ada.zip": archive})
    assert code == 1 and words in said(rows, "ada")
    assert set(submitted["ada"]) == {"week06.ipynb", "exercises_en/rope.py"}
    assert not (tmp_path / "modules.py").exists() and not (tmp_path.parent / "modules.py").exists()


@pytest.mark.parametrize(
    ("archive", "words"),
    [
        (zipped(WORK)[:200], "ada.zip is no sound .zip file"),
        (b"", "ada.zip is no sound .zip file"),
        (b"not a zip at all", "ada.zip is no sound .zip file"),
        (locked(WORK), "is locked with a password"),
        (zipped({"readme.txt": b"x"}), "none of the week's files is in ada.zip"),
        (zipped({}), "none of the week's files is in ada.zip"),
    ],
)
def test_an_archive_that_holds_nothing_usable_is_named_and_others_are_collected(collect, archive, words):
    code, submitted, rows, out = collect({"ada.zip": archive, "grace.zip": zipped(WORK)})
    assert code == 1 and words in said(rows, "ada")
    assert set(submitted) == {"grace"} and "Traceback" not in out


def test_a_damaged_file_in_a_zip_costs_that_file_only(collect):
    raw = bytearray(zipped({"rope.py": CODE, "modules.py": bytes(range(256)) * 40}))
    at = raw.rfind(b"modules.py", 0, raw.find(b"PK\x01\x02")) + 30
    raw[at : at + 20] = b"\xff" * 20
    code, submitted, rows, _ = collect({"ada.zip": bytes(raw)})
    assert code == 1 and "modules.py is damaged" in said(rows, "ada")
    assert submitted["ada"]["exercises_en/rope.py"] == CODE


def test_backslashes_of_windows_are_folders(collect):
    _, submitted, _, _ = collect({"ada.zip": zipped({name.replace("/", "\\"): data for name, data in WORK.items()})})
    assert submitted["ada"] == WORK


def test_links_and_pipes_in_folders_are_not_followed(collect, tmp_path):
    import os

    (tmp_path / "secret.py").write_text("secret", encoding="utf-8")

    def prepare(source):
        (source / "ada/modules.py").symlink_to(tmp_path / "secret.py")
        os.mkfifo(source / "ada/attention.py")
        (source / "grace").symlink_to(source / "ada")

    code, submitted, rows, _ = collect({"ada/rope.py": CODE}, prepare)
    assert code == 1 and set(submitted["ada"]) == {"week06.ipynb", "exercises_en/rope.py"}
    assert "modules.py is a link" in said(rows, "ada") and "attention.py is not a plain file" in said(rows, "ada")
    assert "grace" not in submitted and "grace is a link" in said(rows, "grace")


def test_letters_and_case_of_names_do_not_matter(collect):
    source = {**below(f"Kurt {GODEL_APART}", WORK), **below("ADA", WORK), **below("grace HOPPER", WORK)}
    code, submitted, _, _ = collect(source)
    assert code == 0 and set(submitted) == {"ada", "grace", "kurt"}


def test_times_can_come_from_a_table(collect, tmp_path):
    table = tmp_path / "times.csv"
    table.write_text("student,time\nAda Lovelace,2026-01-10T10:00:00+09:00\ngrace,2026-01-10 10:00\n", encoding="utf-8")
    _, submitted, rows, _ = collect(LAYOUTS["canvas zips"], lambda source: None, "--times", str(table))
    assert submitted["ada"]["timestamp.txt"] == submitted["grace"]["timestamp.txt"] == b"2026-01-10T01:00:00+00:00\n"
    assert "no time of hand-in, counted as on time: kurt" in said(rows, "kurt")


def test_a_bad_line_in_the_table_of_times_is_a_row_and_everything_is_collected(collect, tmp_path):
    table = tmp_path / "times.csv"
    table.write_text("student,time\nada,yesterday\nnobody,2026-01-10T10:00Z\ngrace,2026-01-10T10:00Z\n", "utf-8")
    code, submitted, rows, _ = collect(LAYOUTS["canvas zips"], lambda source: None, "--times", str(table))
    assert code == 0 and len(submitted) == 3 and submitted["grace"]["timestamp.txt"].startswith(b"2026-01-10T10:00:00")
    assert 'times.csv, line 2: "yesterday" is not a time' in said(rows, "ada") and "not on the roster" in str(rows)


@pytest.mark.parametrize("content", [b"who,when\nada,now\n", b"\xff\xfe\x00"])
def test_a_table_of_times_that_is_none_is_one_sentence_and_nothing_is_collected(collect, tmp_path, content):
    table = tmp_path / "times.csv"
    table.write_bytes(content)
    code, submitted, _, out = collect(LAYOUTS["canvas zips"], lambda source: None, "--times", str(table))
    assert code == 1 and not submitted and f"Nothing is collected: {table}" in out


def test_a_bad_time_stamp_is_a_row_and_the_work_is_collected(collect):
    source = {**below("ada", WORK), "ada/timestamp.txt": b"2026-01-10 10:00:00 JST", **below("grace", WORK)}
    code, submitted, rows, _ = collect({**source, "grace/timestamp.txt": b"2026-01-10 10:00:00 +0900"})
    assert code == 0 and "timestamp.txt" not in submitted["ada"]
    assert '"JST" may be any of several zones' in said(rows, "ada")
    assert submitted["grace"]["timestamp.txt"] == b"2026-01-10T01:00:00+00:00\n"


def test_a_students_own_time_stamp_in_an_upload_counts_nothing(collect):
    files = {**WORK, "timestamp.txt": b"2020-01-01T00:00:00Z"}
    upload = {
        "Ada Lovelace_553_assignsubmission_file_/week06.zip": zipped(files),
        **below("Grace Hopper_554_assignsubmission_file_", files),
    }
    _, submitted, rows, _ = collect(upload)
    assert "timestamp.txt" not in {*submitted["ada"], *submitted["grace"]}
    assert "no time of hand-in, counted as on time: ada, grace" in said(rows, "2 students")


def test_names_in_the_table_are_no_formulas_and_no_terminal_codes(collect):
    code, _, rows, out = collect({**below("=cmd|' \x1b[31m'", WORK)})
    assert code == 1 and "\x1b" not in out
    assert any(who.startswith("'=cmd") for who in rows)


@pytest.mark.parametrize("source", ["nowhere", "file.txt"])
def test_a_source_that_is_none_is_one_sentence(small_course, tmp_path, capsys, source):
    (tmp_path / "file.txt").write_text("x", encoding="utf-8")
    course = copy_of(small_course, tmp_path / "course")
    assert main(["collect", str(tmp_path / source), "--course", str(course)]) == 1
    assert "is neither a folder nor a .zip file" in capsys.readouterr().err


def test_small_course_that_is_none_or_broken_is_one_sentence(tmp_path, capsys):
    assert main(["collect", str(tmp_path), "--course", str(tmp_path)]) == 1
    assert "there is no nbgrader_config.py in it" in capsys.readouterr().err
    (tmp_path / "nbgrader_config.py").write_text("c = get_config(\n", encoding="utf-8")
    assert main(["collect", str(tmp_path), "--course", str(tmp_path)]) == 1
    assert "can't be read: SyntaxError" in capsys.readouterr().err


def test_an_empty_roster_takes_names_for_ids(collect):
    from grading.week.databases import open_gradebook

    with open_gradebook(f"sqlite:///{collect.course}/gradebook.db", "course") as gradebook:
        for student, *_ in ROSTER:
            gradebook.remove_student(student)
    code, submitted, rows, _ = collect({**below("zoe", WORK), **below("a;b", WORK)})
    assert code == 1 and set(submitted) == {"zoe"} and "can't be a student's id" in said(rows, "a;b")


def test_a_killed_intake_leaves_nothing_half_and_the_next_one_completes_it(collect, monkeypatch):
    from grading.week.collect import store

    def killed(folder, files, time):
        (folder / "week06.ipynb").write_bytes(b"half")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(store, "write_files", killed)
        code, submitted, _, _ = collect(LAYOUTS["folders"])
        assert code == 130 and not submitted
    code, submitted, _, _ = collect({})
    assert code == 0 and len(submitted) == 3
    assert not list((collect.course / "submitted").glob(".collect-*"))


HELPERS = {
    "exercises_en/modules.py": b"from .helpers import f\nfrom .parts.deep import g\n",
    "exercises_en/helpers.py": b"f = 1\n",
    "exercises_en/parts/__init__.py": b"", "exercises_en/parts/deep.py": b"g = 1\n", "week06.ipynb": NOTEBOOK,
}  # fmt: skip


def test_python_files_beside_the_weeks_belong_to_the_work(collect):
    code, submitted, _, _ = collect({**below("ada", HELPERS), "grace.zip": zipped(HELPERS, "week06/")})
    assert code == 0 and submitted["ada"] == HELPERS and submitted["grace"] == HELPERS
    code, _, _, out = collect({})
    assert "2 unchanged" in out


def test_python_files_beside_the_weeks_come_from_platforms_that_change_names(collect):
    names = {"5_modules.py": b"x", "6_helpers.py": b"old", "7_helpers-1.py": b"new", "9_a b.py": b"z"}
    code, submitted, _, _ = collect({f"lovelaceada_1001_{name}": data for name, data in names.items()})
    assert submitted["ada"]["exercises_en/helpers.py"] == b"new" and "exercises_en/a b.py" not in submitted["ada"]


def test_of_more_python_files_than_are_graded_the_rest_is_named(collect):
    files = {"rope.py": CODE, **{f"h{n:02}.py": CODE for n in range(40)}, "x" * 200 + ".py": CODE}
    code, submitted, rows, _ = collect({"ada.zip": zipped(files)})
    assert code == 1 and len(submitted["ada"]) == 31 and "without ada/h29.py and" in said(rows, "ada")


@pytest.mark.parametrize("sign", ["?", "*", "[1]", "\n"])
def test_a_course_whose_path_nbgrader_reads_otherwise_is_one_sentence(tmp_path, capsys, sign):
    folder = tmp_path / f"course{sign}"
    assert main(["course", str(folder)]) == 1 and not folder.exists()
    assert "takes for a sign of its own: rename the folder" in capsys.readouterr().err
    folder.mkdir()
    (folder / "nbgrader_config.py").write_text("c = get_config()\n", encoding="utf-8")
    assert main(["collect", str(tmp_path), "--course", str(folder)]) == 1
    assert "rename the folder" in capsys.readouterr().err and not list(tmp_path.glob("*.db"))


TIMES = {
    "semicolons": b"student;time\nada;2026-01-10T10:00:00+09:00\n",
    "tabs": b"student\ttime\nada\t2026-01-10T10:00:00+09:00\n",
    "a spreadsheet's Unicode text": "time\tStudent \n2026-01-10T10:00:00+09:00\tada\n".encode("utf-16"),
    "a line for spreadsheets": b"sep=;\r\n\"student\";\"time\"\r\nada;2026-01-10T10:00:00+09:00\r\n",
    "other columns too": b"name,student,x,time\nAda,ada,,2026-01-10T10:00:00+09:00\n\n,,,\n",
}


@pytest.mark.parametrize("kind", TIMES)
def test_a_table_of_times_may_be_separated_as_spreadsheets_do(collect, tmp_path, kind):
    (tmp_path / "times.csv").write_bytes(TIMES[kind])
    code, submitted, _, out = collect(below("ada", WORK), lambda source: None, "--times", str(tmp_path / "times.csv"))
    assert code == 0 and submitted["ada"]["timestamp.txt"] == b"2026-01-10T01:00:00+00:00\n", out


BAD_TIMES = [b"student|time\nada|now\n", b"", b"student,time\nada\n", b'student,time\n"' + b"x" * 200_000]


@pytest.mark.parametrize("content", BAD_TIMES)
def test_a_table_of_times_without_its_columns_names_the_separators(collect, tmp_path, content):
    (tmp_path / "times.csv").write_bytes(content)
    code, submitted, _, out = collect(below("ada", WORK), lambda source: None, "--times", str(tmp_path / "times.csv"))
    assert code == 1 and not submitted and out.startswith("Nothing is collected:") and out.count("\n") == 1
    if b"student," not in content:
        assert "with one of commas, semicolons, tabs between them" in out


def test_a_full_disk_is_one_sentence(collect, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device", "submitted")

    monkeypatch.setattr("grading.week.collect.store.write_files", full)
    code, submitted, _, out = collect(below("ada", WORK))
    assert code == 1 and not submitted and "Stopped: submitted: No space left on device" in out
