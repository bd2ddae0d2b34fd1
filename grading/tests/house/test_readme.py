"""What README.md, CONTRIBUTING.md and docs/ name is there."""

import os
import re

import pytest
import warm

from grading.__main__ import COMMANDS
from grading.paths import REFERENCE, ROOT
from grading.proof.bank import load_mistakes, materialise
from nanolm.__main__ import COMMANDS as STUDENTS

FILES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")))
PAGES = {path.name: path for path in FILES}
TEXTS = {name: path.read_text(encoding="utf-8") for name, path in PAGES.items()}
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
pages = pytest.mark.parametrize("page", PAGES)


@pages
def test_every_make_target_exists(page):
    named = set(re.findall(r"(?:`|^    (?:\w+=\w+ )?)make ([a-z]+)", TEXTS[page], flags=re.MULTILINE))
    assert named <= set(re.findall(r"^([a-z]+):", MAKEFILE, flags=re.MULTILINE))


@pages
def test_every_path_exists(page):
    named = set(re.findall(r"`([\w./-]+(?:/|\.py|\.txt|\.toml|\.md))`", TEXTS[page]))
    named |= set(re.findall(r"`((?:grading|nanolm|tests|notebooks|docs)/[\w./]+)`", TEXTS[page]))
    named |= set(re.findall(r"-[cr] (\S+\.txt)", TEXTS[page]))
    made = {
        "autograder.py",
        "CLASSROOM",
        "/etc/",
        "week06/",
        "COURSE",
        "OUT",
        "build",
        "PART",
        "TOPIC",
        "FILE",
        "NN_topic",
    }  # stand for something, or are made
    fixed = [name for name in sorted(named) if not any(word in name for word in made)]
    assert [name for name in fixed if not (ROOT / name).exists() and not (ROOT / "docs" / name).exists()] == []


@pages
def test_every_link_leads_somewhere(page):
    links = [link for link in re.findall(r"\]\(([^)#]+)", TEXTS[page]) if "://" not in link]
    assert [link for link in links if not (PAGES[page].parent / link).exists()] == []


@pages
def test_every_test_exists(page):
    source = "".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "tests").glob("test_*.py")))
    named = set(re.findall(r"\btest_\w+\b(?!\.py)", TEXTS[page]))
    assert [name for name in named if f"def {name}(" not in source] == []


@pages
def test_every_command_exists(page):
    assert set(re.findall(r"python -m grading ([a-z][a-z-]*)", TEXTS[page])) <= set(COMMANDS)
    assert set(re.findall(r"python -m nanolm ([a-z][a-z-]*)", TEXTS[page])) <= set(STUDENTS)


def test_the_first_screen_has_the_two_commands():
    first = TEXTS["README.md"].splitlines()[:24]
    assert any(line.startswith("    make demo ") for line in first)
    assert any(line.startswith("    make test ") for line in first)


def test_the_failing_test_on_the_first_screen_is_what_a_student_sees(tmp_path):
    shown = re.search(r"(?:    .*\n)+", TEXTS["README.md"]).group().splitlines()
    materialise(REFERENCE, [load_mistakes()["rmsnorm-centers"]], tmp_path)
    words = ("-m", "pytest", "tests", "-k", "rmsnorm", "-p", "no:cacheprovider")
    seen = warm.python(*words, env={**os.environ, "NANOLM_IMPL": str(tmp_path)}).stdout.splitlines()
    places = [seen.index(line.removeprefix("    ")) for line in shown]
    assert len(shown) == 7 and places == sorted(places)
