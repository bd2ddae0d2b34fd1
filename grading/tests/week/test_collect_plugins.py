"""nbgrader's own zip_collect and collect do the same as `python -m grading collect`."""

import os
import shutil
from types import SimpleNamespace

import pytest

pytest.importorskip("nbgrader")

from courses import CONFIG, NOTEBOOK, WORK, below, copy_of, nbgrader, tree, write_tree, zipped

from grading.__main__ import main
from grading.paths import ROOT
from grading.week.collect import owners

PLUGINS = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
c.ZipCollectApp.extractor_plugin = "grading.week.collect.plugins.WeekExtractor"
c.ZipCollectApp.collector_plugin = "grading.week.collect.plugins.WeekCollector"
c.ExchangeFactory.collect = "grading.week.collect.plugins.WeekExchangeCollect"
c.Exchange.root = "exchange"
"""


@pytest.fixture(scope="module")
def a_course(small_course, tmp_path_factory):
    course = copy_of(small_course, tmp_path_factory.mktemp("plugins") / "course")
    (course / "nbgrader_config.py").write_text(CONFIG + PLUGINS, encoding="utf-8")
    write_tree(course, {"release/week06/week06.ipynb": NOTEBOOK})
    return course


def test_zip_collect_takes_what_our_command_takes(a_course, tmp_path):
    source = {
        "lovelaceada_1001_5_week06-1.zip": zipped({**WORK, "../../../evil.py": b"x"}, "week06/"),
        **{f"hoppergrace_LATE_1002_8{n}_{x.split('/')[-1]}": data for n, (x, data) in enumerate(WORK.items())},
        "strangersam_99_1_week06.zip": zipped(WORK),
    }
    write_tree(a_course / "downloaded/week06/archive", source)
    code, said = nbgrader(a_course, "zip_collect", "week06", "--force")
    assert code == 1 and "files skipped" not in said and "Traceback" not in said, said
    by_nbgrader = tree(a_course / "submitted")
    assert set(by_nbgrader) == {*below("ada/week06", WORK), *below("grace/week06", WORK)}
    assert "not on the roster" in said and "leads out of" in said and "2 with something not collected" in said
    assert "not on the roster" in (a_course / "intake-week06.csv").read_text(encoding="utf-8")
    assert tree(a_course / "downloaded/week06/archive") == source

    assert main(["collect", str(write_tree(tmp_path / "source", source)), "--course", str(a_course)]) == 1
    after = tree(a_course / "submitted")
    assert {name: data for name, data in after.items() if name != ".lock"} == by_nbgrader
    assert not (a_course / "replaced").exists()


def test_collect_from_the_exchange_takes_fixed_names_and_follows_no_link(a_course, tmp_path):
    inbound = a_course / "exchange/course/inbound"
    stamp = "2026-01-10 10:00:00.123456 UTC"
    odd = {"week06-1.ipynb": NOTEBOOK, "modules (1).py": WORK["exercises_en/modules.py"]}
    older = below(f"zoe+week06+2026-01-09 {stamp[11:]}+x", WORK)
    write_tree(inbound, {**below(f"zoe+week06+{stamp}+r4nd", odd), **older})
    (tmp_path / "secret.py").write_text("secret", encoding="utf-8")
    (inbound / f"zoe+week06+{stamp}+r4nd/rope.py").symlink_to(tmp_path / "secret.py")
    code, said = nbgrader(a_course, "collect", "week06")
    assert code == 1 and "1 with something not collected" in said and "Traceback" not in said, said
    assert tree(a_course / "submitted/zoe/week06") == {
        "week06.ipynb": NOTEBOOK,
        "exercises_en/modules.py": WORK["exercises_en/modules.py"],
        "timestamp.txt": b"2026-01-10T10:00:00.123456+00:00\n",
    }
    assert "rope.py is a link" in said


def test_where_nothing_is_wrong_both_end_well(a_course):
    write_tree(a_course, below("exchange/course/inbound/kurt+week06+2026-01-10 10:00:00 UTC+x", WORK))
    code, said = nbgrader(a_course, "collect", "week06", "--student=kurt")
    assert code == 0, said
    shutil.rmtree(a_course / "downloaded", ignore_errors=True)
    write_tree(a_course / "downloaded/week06/archive", {"ada.zip": zipped(WORK), "grace.zip": zipped(WORK)})
    (a_course / "times.csv").write_text("student,time\nada,2026-01-10T10:00:00+09:00\n", encoding="utf-8")
    code, said = nbgrader(a_course, "zip_collect", "week06", "--force", "--WeekExtractor.times=times.csv")
    assert code == 0 and "grace: no time of hand-in" in said, said
    assert (a_course / "submitted/ada/week06/timestamp.txt").read_bytes() == b"2026-01-10T01:00:00+00:00\n"


def test_the_key_of_the_feedback_comes_along_by_both_commands_and_only_from_beside_the_files(a_course, tmp_path):
    key, other = b"k" * 128, b"o" * 128
    submission = {**WORK, "submission_secret.txt": key + b"\n", "exercises_en/submission_secret.txt": other}
    folder = "exchange/course/inbound/grace+week06+2026-01-12 10:00:00.000000 UTC+x"
    write_tree(a_course, below(folder, submission))
    code, said = nbgrader(a_course, "collect", "week06", "--student=grace", "--update")
    assert code == 0, said
    stored = a_course / "submitted/grace/week06/submission_secret.txt"
    assert stored.read_bytes() == key
    shutil.rmtree(a_course / "submitted/grace")
    write_tree(tmp_path, below("inbound/grace+week06+2026-01-12 10:00:00.000000 UTC+x", submission))
    assert main(["collect", str(tmp_path / "inbound"), "--course", str(a_course)]) == 0
    assert stored.read_bytes() == key
    for code, then in ((WORK["exercises_en/rope.py"], True), (b"z = 3\n", False)):
        files = {**WORK, "exercises_en/rope.py": code, "submission_secret.txt": other}
        source = write_tree(tmp_path / f"platform {then}", below("grace", files))
        assert main(["collect", str(source), "--course", str(a_course)]) == 0
        assert stored.exists() == then, "the same work loses its key, or a student's own file became one"


def test_collect_takes_no_folder_that_is_another_ones_or_tells_no_time(a_course, monkeypatch):
    def number_of(path):
        return 5000 if str(path).endswith("+foreign") else os.geteuid()

    monkeypatch.setattr(owners, "user_number", number_of)  # the command runs in a fork
    monkeypatch.setattr(owners.pwd, "getpwuid", lambda number: SimpleNamespace(pw_name="mallory"))
    other = {**WORK, "exercises_en/modules.py": b"mallory = 1\n"}
    inbound = a_course / "exchange/course/inbound"
    names = ["lee+week06+2026-02-10 10:00:00 UTC+foreign", " lee+week06+2026-03-10 10:00:00 UTC+x", "max+week06+soon+x"]
    write_tree(inbound, below("lee+week06+2026-01-10 10:00:00 UTC+own", WORK))
    for name in names:
        write_tree(inbound, below(name, other))
    code, said = nbgrader(a_course, "collect", "week06")
    assert code == 1 and "Traceback" not in said, said
    assert tree(a_course / "submitted/lee/week06")["exercises_en/modules.py"] == WORK["exercises_en/modules.py"]
    assert "says that it is lee's but belongs to mallory" in said
    assert "names no student" in said and "has no time in its name" in said
    assert not (a_course / "week06").exists() and not (a_course / "submitted/max").exists()
