"""Whose a submission is: what a platform says, and never what a student has written into a name."""

import os
import unicodedata
from types import SimpleNamespace

import pytest

pytest.importorskip("nbgrader")

from courses import CODE, WORK, below, said, write_tree, zipped

from grading.__main__ import main
from grading.week.collect import owners
from grading.week.collect.names import title_of

OTHER = {**WORK, "exercises_en/modules.py": b"mallory = 1\n"}
FILES = {name.split("/")[-1]: data for name, data in WORK.items()}
LATER = "2026-02-01-10-00-00"
# What a student may call a file, so that it looks like somebody else's from some platform.
LURES = [
    f"x_ada_attempt_{LATER}_modules.py", f"ada_attempt_{LATER}_week06.zip",
    "Ada Lovelace_553_assignsubmission_file_week06.zip", "Ada Lovelace_553_assignsubmission_file_",
    "ada+week06+2026-02-01 10:00:00 UTC+x.zip", "lovelaceada_1001_99_week06.zip", "lovelaceada_LATE_1001_99_modules.py",
    "ada.zip", "ada", "\u202eada_1001_9_x.zip", "a\nada_1001_9_x.zip",
]  # fmt: skip
PLATFORMS = {  # the files of ada (1001) and grace (1002), and how a file of grace's is called
    "canvas": (
        {f"lovelaceada_1001_7{n}_{name}": data for n, (name, data) in enumerate(FILES.items())},
        {f"hoppergrace_1002_8{n}_{name}": data for n, (name, data) in enumerate(FILES.items())},
        "hoppergrace_1002_90_{}",
    ),
    "blackboard": (
        {"Week_06_ada_attempt_2026-01-10-10-00-00_week06.zip": zipped(WORK)},
        {"Week_06_grace_attempt_2026-01-10-10-00-00_week06.zip": zipped(WORK)},
        "Week_06_grace_attempt_2026-01-10-10-00-00_{}",
    ),
    "moodle files": (
        {"Ada Lovelace_553_assignsubmission_file_week06.zip": zipped(WORK)},
        {"Grace Hopper_554_assignsubmission_file_week06.zip": zipped(WORK)},
        "Grace Hopper_554_assignsubmission_file_{}",
    ),
    "moodle folders": (
        below("Ada Lovelace_553_assignsubmission_file_", WORK),
        below("Grace Hopper_554_assignsubmission_file_", WORK),
        "Grace Hopper_554_assignsubmission_file_/{}",
    ),
    "exchange": (
        below("ada+week06+2026-01-10 10:00:00 UTC+r", WORK),
        below("grace+week06+2026-01-10 10:00:00 UTC+r", WORK),
        "grace+week06+2026-01-10 10:00:00 UTC+{}/modules.py",
    ),
    "folders": (below("ada", WORK), below("grace", WORK), "grace/{}"),
}


def work_of(submitted, student):
    return {name: data for name, data in submitted.get(student, {}).items() if name != "timestamp.txt"}


@pytest.mark.parametrize("platform", PLATFORMS)
def test_no_name_that_a_student_gives_takes_another_ones_place(collect, platform):
    ada, grace, pattern = PLATFORMS[platform]
    lures = {pattern.format(lure): zipped(OTHER) if lure.endswith(".zip") else CODE + b"z = 3\n" for lure in LURES}
    code, submitted, rows, out = collect({**ada, **grace, **lures})
    assert work_of(submitted, "ada") == WORK and "Traceback" not in out
    assert "ada" not in said(rows, "ada") or "2 entries claim" not in said(rows, "ada")


@pytest.mark.parametrize("platform", PLATFORMS)
def test_no_name_that_a_student_gives_hands_in_for_one_who_did_not(collect, platform):
    _, grace, pattern = PLATFORMS[platform]
    lures = {pattern.format(lure): zipped(OTHER) if lure.endswith(".zip") else CODE for lure in LURES}
    _, submitted, _, _ = collect({**grace, **lures})
    assert "ada" not in submitted


@pytest.mark.parametrize("platform", sorted(set(PLATFORMS) - {"folders"}))
def test_a_source_of_one_lure_alone_is_still_its_platforms(collect, platform):
    for number, lure in enumerate(LURES):
        if number:
            for path in sorted(collect.source.rglob("*"), reverse=True):
                path.unlink() if path.is_file() else path.rmdir()
        _, submitted, _, _ = collect({PLATFORMS[platform][2].format(lure): zipped(OTHER)})
        assert "ada" not in submitted, lure


TWO = {
    "folders of two spellings": {
        **below(unicodedata.normalize("NFC", "Kurt G\u00f6del"), WORK),
        **below(unicodedata.normalize("NFD", "Kurt G\u00f6del"), OTHER),
    },
    "folders": {**below("kurt", WORK), **below("Kurt G\u00f6del", OTHER)},
    "a folder and a zip": {**below("kurt", WORK), "Kurt Goedel.zip": b"", "Kurt Godel.zip": zipped(OTHER)},
    "canvas": {
        "godelkurt_1003_5_week06.zip": zipped(WORK), "godelkurt_2003_6_week06.zip": zipped(OTHER),
        "hoppergrace_1002_7_week06.zip": zipped(WORK),
    },
    "moodle": {
        "Kurt Godel_5_assignsubmission_file_week06.zip": zipped(WORK),
        "Kurt Godel_6_assignsubmission_file_week06.zip": zipped(OTHER),
    },
    "moodle folders": {
        **below("Kurt Godel_5_assignsubmission_file_", WORK), **below("Kurt Godel_6_assignsubmission_file_", OTHER),
    },
    "blackboard, one later": {
        "W_kurt_attempt_2026-01-10-10-00-00_week06.zip": zipped(WORK),
        "W_KURT_attempt_2026-01-11-10-00-00_week06.zip": zipped(OTHER),
        "W_grace_attempt_2026-01-11-10-00-00_week06.zip": zipped(WORK),
    },
}  # fmt: skip


@pytest.mark.parametrize("claims", TWO)
def test_two_accounts_in_one_place_wait_for_a_person(collect, claims):
    code, submitted, rows, _ = collect(TWO[claims])
    assert code == 1 and "kurt" not in submitted
    assert "2 entries claim to be theirs" in said(rows, "kurt") and ": keep one" in said(rows, "kurt")
    assert "handed in nothing" not in said(rows, "kurt")


def test_a_claim_never_replaces_what_was_collected_before(collect):
    collect(below("kurt", WORK))
    code, submitted, rows, _ = collect(below("Kurt Godel", OTHER))
    assert code == 1 and work_of(submitted, "kurt") == WORK and "claim to be theirs" in said(rows, "kurt")


def test_the_platform_is_decided_once_and_said(collect):
    ada, grace, _ = PLATFORMS["canvas"]
    stray = {"Ada Lovelace_553_assignsubmission_file_week06.zip": zipped(OTHER)}
    code, submitted, rows, out = collect({**ada, **grace, **stray})
    assert code == 1 and work_of(submitted, "ada") == WORK
    assert "Read as what Canvas gives: 6 of 7 names are as there." in out
    assert "not on the roster" in said(rows, "Ada Lovelace_553_assignsubmission_file_week06.zip")


def test_a_source_of_two_platforms_in_equal_parts_is_one_sentence(collect):
    code, submitted, _, out = collect({
        "lovelaceada_1001_5_week06.zip": zipped(WORK),
        "Grace Hopper_554_assignsubmission_file_week06.zip": zipped(WORK),
    })  # fmt: skip
    assert code == 1 and not submitted and "collect what each gave from a folder of its own" in out


@pytest.mark.parametrize(
    ("names", "students", "title"),
    [
        (["Week 06_ada", "Week 06_bob"], {"ada", "bob"}, "Week 06_"),
        (["Week_06_ada"], {"ada"}, "Week_06_"),
        (["W_van_dam", "W_ada"], {"van_dam", "dam", "ada"}, "W_"),
        (["W_u_1", "W_u_2"], {"u_1", "u_2"}, "W_"),
        (["W_van_dam"], {"van_dam", "dam"}, None),
        (["W_06_zoe"], set(), "W_06_"),
        (["zoe"], {"zoe"}, ""),
    ],
)
def test_a_title_ends_where_a_student_begins(names, students, title):
    assert title_of(names, students.__contains__) == title


def owned(monkeypatch, names):
    """As if the folders' owners were these: {folder's beginning: user}."""

    def number_of(path):
        found = [number for number, start in enumerate(names, 5000) if os.path.basename(path).startswith(start)]
        return found[0] if found else os.geteuid()

    users = dict(enumerate(names.values(), 5000))
    monkeypatch.setattr(owners, "user_number", number_of)
    monkeypatch.setattr(owners.pwd, "getpwuid", lambda number: SimpleNamespace(pw_name=users[number]))


def test_a_folder_in_the_exchange_counts_for_its_owner_only(collect, monkeypatch):
    owned(monkeypatch, {"ada+week06+2026-01-10": "ada", "ada+week06+2026-01-11": "mallory", "grace+": "grace"})
    code, submitted, rows, _ = collect({
        **below("ada+week06+2026-01-10 10:00:00 UTC+a", WORK), **below("ada+week06+2026-01-11 10:00:00 UTC+b", OTHER),
        **below("grace+week06+2026-01-10 10:00:00 UTC+c", WORK),
    })  # fmt: skip
    assert code == 1 and work_of(submitted, "ada") == WORK and work_of(submitted, "grace") == WORK
    assert "+b says that it is ada's but belongs to mallory" in said(rows, "ada")


def test_a_folder_of_nobody_in_the_exchange_waits_and_one_of_ours_is_believed(collect, monkeypatch):
    owned(monkeypatch, {"ada+": "mallory"})
    monkeypatch.setattr(owners.pwd, "getpwuid", lambda number: {}[number])
    code, submitted, rows, _ = collect({
        **below("ada+week06+2026-01-10 10:00:00 UTC+a", WORK), **below("grace+week06+2026-01-10 10:00:00 UTC+c", WORK),
    })  # fmt: skip
    assert set(submitted) == {"grace"} and "belongs to user number 5000, who has no name here" in said(rows, "ada")
    assert "1 folders tell no owner" in said(rows, "(source)")


def test_the_course_may_say_that_owners_are_not_asked(collect, monkeypatch):
    owned(monkeypatch, {"ada+": "jovyan"})
    with (collect.course / "nbgrader_config.py").open("a", encoding="utf-8") as config:
        config.write("c.ExchangeCollect.check_owner = False\n")
    code, submitted, _, _ = collect(below("ada+week06+2026-01-10 10:00:00 UTC+a", WORK))
    assert code == 0 and set(submitted) == {"ada"}


def test_a_user_of_the_exchange_is_their_id_to_the_letter(collect):
    code, submitted, rows, _ = collect(below("ADA+week06+2026-01-10 10:00:00 UTC+a", OTHER))
    assert code == 1 and not submitted and "is it ada?" in said(rows, "ADA+week06+2026-01-10 10:00:00 UTC+a")


@pytest.mark.parametrize("student", ["2021/117", "../ada", ".ada", "a\\b", " ada", "a" * 300])
def test_an_id_that_can_not_be_a_folder_is_named_and_no_one_handed_in_nothing(collect, student):
    from grading.week.databases import open_gradebook

    with open_gradebook(f"sqlite:///{collect.course}/gradebook.db", "course") as gradebook:
        gradebook.add_student(student, first_name="Odd", last_name="One", email="odd@example.org")
    code, submitted, rows, _ = collect({**below("Odd One", WORK), **below("ada", WORK)})
    assert code == 1 and set(submitted) == {"ada"}
    found = [words for who, words in rows.items() if who.strip("'") in (student, student.strip())]
    assert len(found) == 1 and "can't be a folder's name" in found[0][0][0] and "handed in nothing" not in str(found)
    assert not (collect.course / "ada").exists() and not (collect.course / "submitted/2021").exists()


def test_what_was_lost_stays_in_the_table_until_it_comes(collect, tmp_path):
    collect({"ada.zip": b"broken", **below("Unknown Name", WORK), **below("grace", WORK)})
    def intake(name, files):
        return main(["collect", str(write_tree(tmp_path / name, files)), "--course", str(collect.course)])

    intake("second", below("kurt", WORK))
    table = (collect.course / "intake-week06.csv").read_text(encoding="utf-8")
    assert "ada.zip is no sound" in table and "ada,handed in nothing" not in table
    assert "Unknown Name,not on the roster" in table
    intake("third", below("ada", WORK))
    table = (collect.course / "intake-week06.csv").read_text(encoding="utf-8")
    assert "ada.zip is no sound" not in table and "Unknown Name,not on the roster" in table


def test_files_under_other_names_are_not_handed_in_nothing(collect):
    source = {"ada.rar": b"Rar!", "grace.tar.gz": b"\x1f\x8b", "kurt.ipynb": b"{}"}
    code, submitted, rows, _ = collect({**source, "someone.7z": b"7z", "list.txt": b""})
    assert code == 1 and not submitted
    assert "ada.rar is no .zip file: ask for a .zip" in said(rows, "ada")
    assert "grace.tar.gz is no .zip file" in said(rows, "grace") and "put it into a folder" in said(rows, "kurt")
    assert "handed in nothing" not in str(rows)
    table = (collect.course / "intake-week06.csv").read_text(encoding="utf-8")
    assert "someone.7z,someone.7z is no .zip file,ask for a .zip,no owner" in table
    assert "list.txt: its name says no student" in said(rows, "(source)")


def test_names_with_odd_letters_stay_in_one_cell_and_on_one_line(collect):
    names = ["x\x1b[31m\u202egnp.exe", "\udcff\udcfe", "a\u2028b\x07", "=1+1", "a;=cmd|' /C calc'!A0", "\uff1d1+1"]
    for name in names:
        folder = os.fsencode(collect.source / name)
        os.makedirs(folder)
        with open(folder + b"/modules.py", "wb") as file:
            file.write(CODE)
    code, _, rows, out = collect({})
    table = (collect.course / "intake-week06.csv").read_bytes().decode("utf-8")
    assert code == 1 and "Traceback" not in out and out.isascii()
    assert all(letter.isprintable() for line in table.split("\r\n") for letter in line)
    assert not [cell for row in rows for cell in row.split(";") if cell.strip().startswith(("=", "\uff1d"))]


