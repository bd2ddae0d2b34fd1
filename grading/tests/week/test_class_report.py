"""The class report: what it counts, names and escapes, for a class of none, of one, and of many."""

import base64
import cProfile
import json
import pstats
import re
from types import SimpleNamespace

import pytest
from small_course import DUE, SmallCourse, broken, result

from grading.__main__ import main
from grading.demo.made_up_class import CLASS, programs
from grading.week.course_folder import Course
from grading.week.report import facts, pictures, similar

pytestmark = pytest.mark.filterwarnings("ignore:Object of type")  # nbgrader's own, harmless
CENTERS, REPEATS = "rmsnorm-centers", "gqa-repeat-instead-of-interleave"
NORM, HEADS = "test_rmsnorm_does_not_center", "test_attention_repeat_kv_keeps_neighbours_together"
ROPE, CACHE = "test_rope_preserves_norm", "test_cache_gives_the_same"


@pytest.fixture
def course(tmp_path):
    return SmallCourse(tmp_path)


@pytest.fixture
def run(capsys):
    """The command on a course: its exit code, what it says, and the page."""

    def of(course):
        capsys.readouterr()
        code = main(["report", "--course", str(course.folder)])
        said, file = capsys.readouterr(), course.folder / "report.html"
        page = file.read_text(encoding="utf-8") if file.exists() else ""
        return SimpleNamespace(returncode=code, stdout=said.out, stderr=said.err, page=page, text=words(page))

    return of


def words(page):
    """The page's words, without tags and pictures."""
    return " ".join(re.sub(r"<[^>]*>", " ", page.partition("<body>")[2]).split())


def section(text, title, end):
    return text.rpartition(f" {title} ")[2].partition(f" {end} ")[0]


def wrong(student, *tests):
    names = {NORM: CENTERS, HEADS: REPEATS}
    return result(student, dict.fromkeys(tests, "failed"), names)


@pytest.mark.parametrize("students", [0, 1])
def test_a_class_of_none_and_of_one_has_a_page(course, run, students):
    if students:
        course.add("ada", 11, 4, first="Ada")
    said = run(course)
    assert said.returncode == 0, said.stderr
    assert f"{students} on the roster" in said.text and "There are not two submissions to compare." in said.text
    assert ("Nobody has points yet" in said.text) == (students == 0)
    assert ("There is no result of the grader yet." in said.text) == (students == 0)


def test_mistakes_come_with_students_symptom_hints_and_counts(course, run):
    course.add("ada", 8, 4, first="Ada", graded=wrong("ada", NORM))
    course.add("bob", 4, 4, first="Bob", graded=wrong("bob", NORM, HEADS))
    course.add("zed", 11, 4, first="Zed")
    said = run(course)
    listed = section(said.text, "Mistakes", "Tests that tell nobody apart")
    assert "2 students rmsnorm-centers Every row of the output has mean 0" in listed
    assert "Ada , Bob" in listed and "Zed" not in listed
    assert "python -m nanolm hint rmsnorm-centers" in listed and "Compare the mean of a row before and after" in listed
    assert json.loads((course.folder / "report.counts.json").read_text()) == {CENTERS: 2, REPEATS: 1}
    from grading.proof.bank_page import read_counts

    assert read_counts(course.folder / "report.counts.json")[CENTERS] == 2


def test_a_student_counts_once_for_a_mistake_that_two_tests_name():
    twice = result("ada", {NORM: "failed", HEADS: "failed"}, {NORM: CENTERS, HEADS: CENTERS})
    assert facts.counts({"ada": twice}) == {CENTERS: 1}


def test_red_tests_without_a_name_and_dead_workers_are_told(course, run):
    course.add("ada", 9, 4, first="Ada", graded=wrong("ada", ROPE))
    course.add("bob", 9, 4, first="Bob", graded=result("bob", {CACHE: "crashed", ROPE: "advice"}))
    said = run(course)
    unnamed = section(said.text, "none of the known mistakes", "Code that ended its worker")
    assert "test_rope_preserves_norm 1 Ada" in unnamed
    ended = section(said.text, "Code that ended its worker", "Tests that tell nobody apart")
    assert "crashed Bob" in ended and "advice" not in ended


def test_tests_that_nobody_or_everybody_passed_are_those_of_who_tried():
    class_of = {
        "ada": result("ada", {NORM: "failed", ROPE: "not started", CACHE: "not started"}),
        "bob": result("bob", {NORM: "failed", HEADS: "failed", CACHE: "waiting"}),
    }
    nobody, everybody = facts.extremes(class_of)
    assert nobody == [(NORM, "rmsnorm", 2)] and everybody == [(ROPE, "rope", 1)]


def test_parts_count_all_some_none_and_who_could_not_be_asked():
    def of(earned, state="failed"):
        tests = [
            {"part": "rope", "points": 2, "earned": points, "state": "passed" if points else state} for points in earned
        ]
        return {"tests": [*tests, {"part": "cache", "points": 0, "earned": 0, "state": "failed"}]}

    class_of = {"a": of([2, 2]), "b": of([2, 0]), "c": of([0, 0]), "d": of([2, 2])}
    (part,) = facts.by_part(class_of | {"e": of([0, 0], "waiting"), "f": of([0, 0], "not started")})
    assert (part.name, part.points, part.bonus) == ("rope", 4, False)
    assert (part.full, part.some, part.none, part.open) == (2, 1, 1, 2)
    assert part.share == pytest.approx(10 / 24)


def test_the_average_stands_beside_the_maximum_and_the_bonus_apart(course, run):
    course.add("ada", 11, 4, bonus=8)
    course.add("bob", 5, 4)
    text = run(course).text
    assert "12.0 of 15 points on average" in text and "+ 4.0 of bonus on average" in text and "16.0 median mark" in text
    assert "late penalties taken off, bonus and written answers so far counted" in text


def test_a_limit_of_the_bonus_holds_in_the_report(course, run):
    with (course.folder / "nbgrader_config.py").open("a", encoding="utf-8") as file:
        file.write("c.BonusPolicy.most = 3\n")
    course.add("ada", 11, 4, bonus=8)
    text = run(course).text
    assert "+ 3.0 of bonus on average" in text and "18.0 median mark" in text and "bonus up to 3 points" in text


def test_what_waits_for_a_person_is_a_list_on_top(course, run):
    course.add("ada", 11, graded=wrong("ada", NORM))
    course.add("bob", 0, 4, graded=broken("bob"))
    table = "who,what,what to do,collected\neve,week06.zip is cut off,ask again,no\n"
    (course.folder / "intake-week06.csv").write_text(table, encoding="utf-8")
    listed = section(run(course).text, "To do", "Totals Parts")
    ours, theirs = "1 submission has no grade by our fault", "1 thing that came in was not collected"
    assert listed.index(ours) < listed.index(theirs)
    assert "1 student waits for marks by hand" in listed and "1 test was passed by nobody who tried" in listed
    assert "pair of similar" not in listed


def test_where_nothing_waits_that_is_said(course, run):
    course.add("ada", 11, 4)
    assert "Nothing waits for you." in run(course).text


def test_grader_errors_stand_on_top(course, run):
    course.add("ada", 11, 4)
    course.add("bob", 0, 4, first="Bob", graded=broken("bob", "the sandbox <did> not start"))
    said = run(course)
    assert said.text.index("The grader failed on 1 submission") < said.text.index("on the roster")
    assert "Bob the sandbox &lt;did&gt; not start" in said.text and "1 grader errors" in said.stdout
    assert "1 with graded code" in said.text


def test_late_ungraded_absent_and_intake_are_told(course, run):
    course.add("ada", 9, 1, first="Ada", time="2026-11-29 00:00:00")
    course.add("bob", 11, first="Bob")
    course.add("eve", first="Eve")
    table = 'who,what,what to do,collected\nbob,"<b>cut off</b>",ask again,no\n'
    (course.folder / "intake-week06.csv").write_text(table, encoding="utf-8")
    said = run(course)
    late = section(said.text, "Late submissions", "Intake")
    assert "Ada 2026-11-29 00:00:00 +0000 1 d 1 h 2.00" in late and "Bob" not in late and f"{DUE} +0000" in late
    assert "bob &lt;b&gt;cut off&lt;/b&gt; ask again" in said.text and "Nothing is there from Eve" in said.text
    assert "interview 1 Bob" in section(said.text, "Written answers to grade", "Similar code")


def test_everything_from_outside_is_escaped(course, run):
    name = "<script>alert(1)</script>\u202e\"'&"
    course.add("ada", 4, 4, first=name, last=name, graded=wrong("ada", NORM, HEADS, ROPE, CACHE))
    course.add("bob", 0, 4, first=name, graded=broken("bob", name))
    page = run(course).page
    assert "<script" not in page and "&lt;script&gt;alert(1)" in page
    assert page.count("<bdi") == page.count("</bdi>") > 4


def test_the_page_needs_no_network(course, run):
    course.add("ada", 8, 4, graded=wrong("ada", NORM))
    page = run(course).page
    drawn = [base64.b64decode(data).decode() for data in re.findall(r"data:image/svg\+xml;base64,([^\"]+)", page)]
    assert len(drawn) == 3 and all("<svg" in picture for picture in drawn)
    assert not re.search(r"(?:src|href)=\"(?!data:|#)", page) and "@import" not in page and "url(" not in page


def test_the_same_course_gives_the_same_page(course, run):
    course.add("ada", 8, 4, graded=wrong("ada", NORM))
    course.add("bob", 11, 4)
    assert run(course).page == run(course).page


def test_a_run_is_told_by_the_times_of_its_results():
    first, second = facts.runs({"a": 100.0, "b": 103.0, "c": 113.0, "d": 9_000.0})
    assert (first.begin, first.seconds, first.results, first.longest, first.after) == (100.0, 13.0, 3, 10.0, "c")
    assert (second.results, second.seconds, second.after) == (1, 0.0, "d")


def code_of(*students):
    by_id = {student.id: student for student in CLASS}
    return {name: programs.files(by_id[name].program) for name in students}


def test_near_copies_are_the_only_pair_that_is_named():
    others = ("aada", "chloe", "daniil", "jin", "kasper", "mihai", "quang", "anders", "zofia", "lale")
    texts = code_of("gisela", "hugo", *others)
    (pair,) = similar.pairs(texts)
    assert (pair.one, pair.other) == ("gisela", "hugo") and pair.share > 0.95
    assert {"modules.py", "attention.py"} <= set(pair.files)


def test_stubs_and_passages_of_many_are_no_similarity():
    stub = code_of("tala")["tala"]
    assert similar.pairs({"a": stub, "b": stub}) == []
    same = code_of("aada")["aada"]
    assert len(similar.pairs({"a": same, "b": same})) == 1
    assert similar.pairs({str(number): same for number in range(similar.COMMON + 1)}) == []


def test_a_student_with_much_code_makes_no_report_wait(course):
    files = {**code_of("gisela")["gisela"], "helpers.py": "x = 1\n" * 20_000, "more.py": "y = 2\n" * 9_999}
    course.hand_in("gisela", files)
    (compared,) = similar.submissions(Course(course.folder), "week06", ["gisela"]).values()
    assert sum(map(len, compared.values())) == similar.LETTERS
    assert {name: compared[name] for name in code_of("gisela")["gisela"]} == code_of("gisela")["gisela"]


def test_similar_work_is_shown_as_a_pointer(course, run):
    for name, files in code_of("gisela", "hugo").items():
        course.add(name, 11, 4, first=name.title())
        course.hand_in(name, files)
    said = run(course)
    shown = section(said.text, "Similar code", "Time of grading")
    assert "A pointer to look at both, not a proof" in shown and "at least 80 %" in shown
    assert "Gisela Hugo 100 %" in shown


def calls_for(students):
    """How many functions are called for the facts, pictures and comparison of so many, each with code of their own."""
    tests = [NORM, HEADS, ROPE, CACHE]
    class_of = {f"s{n:03}": wrong(f"s{n:03}", *tests[: n % 5]) for n in range(students)}
    base = code_of("aada")["aada"]["attention.py"]
    texts = {name: {"attention.py": base.replace("scores", "x + y" * (n % 7))} for n, name in enumerate(class_of)}
    with cProfile.Profile() as profile:
        pictures.parts(facts.by_part(class_of))
        pictures.mistakes(facts.mistakes(class_of))
        pictures.totals([n % 160 for n in range(students)], 100)
        facts.extremes(class_of)
        similar.pairs(texts)
    return pstats.Stats(profile).total_calls


def test_work_grows_with_the_students_and_not_with_their_pairs():
    calls_for(20)  # what is read and imported once
    hundred, two_hundred, five_hundred = map(calls_for, (100, 200, 500))
    assert five_hundred - hundred < 6 * (two_hundred - hundred)  # 4 times where it grows with students, 8 with pairs


def test_a_folder_that_is_no_course_is_one_sentence(tmp_path, capsys):
    assert main(["report", "--course", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert "is no course folder" in said and said.count("\n") == 1


def test_an_assignment_that_is_not_there_is_one_sentence(course, run):
    with course.gradebook() as book:
        book.remove_assignment("week06")
    said = run(course)
    assert said.returncode == 1 and not said.page and said.stderr.count("\n") == 1
    assert said.stderr.startswith("There is no report: the gradebook has no assignment week06")
