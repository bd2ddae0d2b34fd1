"""formgrader in JupyterLab, in a real Chromium: submissions, marks of a part, an answer marked, the feedback page."""

import json

import pytest

pytest.importorskip("nbgrader")

from course_in_nbgrader import Course, sample  # noqa: E402
from in_browser import chromium, jupyterlab, look, until, visible  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402

pytestmark = pytest.mark.proof

ANSWER, WRITTEN, MARK = "ffn-width", "Three matrices of D F against two of 4 D D: $3DF = 8D^2$.", 4.0
STUDENTS = {"ada": "five_mistakes", "bob": "all_right"}


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A course of two, autograded; ada has written one answer."""
    made = Course(tmp_path_factory.mktemp("formgrader") / "course")
    assert made.api().generate_assignment("week06")["success"]
    for student, program in STUDENTS.items():
        made.hand_in(student, sample(program))
    file = made.folder / "submitted" / "ada" / "week06" / "week06.ipynb"
    notebook = json.loads(file.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("grade_id") == ANSWER:
            cell["source"] = WRITTEN
    file.write_text(json.dumps(notebook), encoding="utf-8")
    assert made.autograde()[1]
    return made


@pytest.fixture(scope="module")
def lab(course):
    with jupyterlab(course.folder) as address:
        yield address


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


def rows(browser):
    """The rows of the page's table, as texts. The page draws its table several times, so it is read in one go."""
    return browser.execute_script("return [...document.querySelectorAll('tbody tr')].map(row => row.innerText)")


def click(browser, selector):
    until(browser, lambda: browser.find_elements(By.CSS_SELECTOR, selector))
    browser.execute_script("document.querySelector(arguments[0]).click()", selector)


def row_of(browser, words):
    return next((row for row in rows(browser) if words in row), None)


def open_submission(browser, lab, number):
    """Open one of the submissions, which formgrader lists without names; the page's text."""
    browser.get(f"{lab}/formgrader/gradebook/week06/week06")
    links = "return [...document.querySelectorAll('tbody a[href*=\"/submissions/\"]')].map(link => link.href)"
    found = until(browser, lambda: sorted(set(browser.execute_script(links))))
    browser.get(found[number])
    until(browser, lambda: visible(browser, "input.score"))
    return browser.find_element(By.TAG_NAME, "body").text


def test_formgrader_in_jupyterlab_lists_the_submissions(course, lab, browser):
    browser.get(f"{lab}/lab?reset")
    until(browser, lambda: visible(browser, ".lm-MenuBar-item", "Nbgrader")).click()
    until(browser, lambda: visible(browser, ".lm-Menu-item", "Formgrader")).click()
    browser.switch_to.frame(until(browser, lambda: visible(browser, "iframe")))
    assert until(browser, lambda: row_of(browser, "week06"))
    look(browser, "6_formgrader")
    click(browser, "tbody a[href$='manage_submissions/week06']")
    until(browser, lambda: row_of(browser, "bob"))
    of = {student: sum(scores.values()) for student, scores in course.scores().items()}
    assert "needs manual grading" in row_of(browser, "ada") and "graded" in row_of(browser, "bob")
    for student, score in of.items():
        assert f"{score:g} / 130" in row_of(browser, student)
    look(browser, "7_submissions")
    browser.switch_to.default_content()


def test_the_marks_of_a_part_are_the_graders(course, lab, browser):
    for number in (0, 1):
        open_submission(browser, lab, number)
        shown = {box.get_attribute("id"): box for box in browser.find_elements(By.CSS_SELECTOR, "input.score")}
        parts = {name: float(shown[name].get_attribute("placeholder")) for name in ("rmsnorm", "rope")}
        assert parts in [{name: scores[name] for name in parts} for scores in course.scores().values()]
    assert course.scores()["ada"]["rmsnorm"] < course.scores()["bob"]["rmsnorm"]
    browser.execute_script("document.getElementById('rmsnorm').scrollIntoView({block: 'center'})")
    look(browser, "8_marks_of_a_part")


def test_an_answer_is_marked_by_hand(course, lab, browser):
    next(number for number in (0, 1) if "3DF" in open_submission(browser, lab, number))
    assert "For the grader" in browser.find_element(By.TAG_NAME, "body").text  # the rubric stands by the answer
    box = browser.find_element(By.ID, ANSWER)
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", box)
    box.send_keys(str(MARK), Keys.TAB)
    until(browser, lambda: course.scores()["ada"][ANSWER] == MARK)
    look(browser, "9_answer_marked")
    browser.get(f"{lab}/formgrader/manage_submissions/week06")
    until(browser, lambda: row_of(browser, "ada"))
    assert "needs manual grading" not in row_of(browser, "ada")


def test_the_feedback_page_shows_marks_and_the_mistake(course, lab, browser):
    browser.get(f"{lab}/formgrader/manage_submissions/week06")
    until(browser, lambda: row_of(browser, "ada"))
    click(browser, "tbody tr:first-child .generate-feedback a")
    page = course.folder / "feedback" / "ada" / "week06" / "week06.html"
    until(browser, page.exists)
    browser.get(page.as_uri())
    text = browser.find_element(By.TAG_NAME, "body").text
    assert "2 of 20" in text and f"{MARK:g}" in text
    assert "test_rmsnorm_does_not_center" in text and "rmsnorm-centers" in text
    assert "For the grader" not in text and not browser.find_elements(By.CSS_SELECTOR, "script[src]")
    look(browser, "10_feedback")
