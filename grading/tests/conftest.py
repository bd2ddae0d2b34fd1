"""The course team's tests: on one thread, as threads would only wait for each other on tiny tensors."""

import csv

import pytest
import torch

import grading  # noqa: F401  puts tests/ on the path

torch.set_num_threads(1)

# The files that take longest, the longest first: side by side on two cores they leave no long end to one of them.
LONGEST = (
    "test_demo.py",
    "test_notebooks.py",
    "test_right_programs.py",
    "test_exchange_ring.py",
    "test_gradescope.py",
    "test_release.py",
    "test_grader_equality.py",
    "test_grader_attacks.py",
    "test_lab_in_browser.py",
    "test_states.py",
    "test_check_samples.py",
    "test_grader_batch.py",
    "test_grader_limits.py",
)


def pytest_configure(config):
    config.addinivalue_line("markers", "proof: part of `make proof`; whatever has no such mark is part of `make test`")


def pytest_collection_modifyitems(items):
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path.name, len(LONGEST)))  # stable: a file stays as it is


@pytest.fixture(scope="session")
def small_course(tmp_path_factory):
    """An nbgrader course with three students; tests copy it, as a new gradebook takes seconds."""
    pytest.importorskip("nbgrader")
    import courses

    return courses.template(tmp_path_factory.mktemp("small") / "course")


@pytest.fixture
def collect(small_course, tmp_path, capsys):
    """Write a source, collect it; (exit code, {student: {file: bytes}}, {who: [(what, do)]}, the last words)."""
    from courses import copy_of, tree, write_tree

    from grading.__main__ import main

    course, source = copy_of(small_course, tmp_path / "course"), tmp_path / "source"

    def of(files, prepare=lambda source: None, *arguments):
        write_tree(source, files)
        prepare(source)
        before = tree(source)
        code = main(["collect", str(source), "--course", str(course), *arguments])
        assert tree(source) == before, "the source was changed"
        submitted = {path.parent.name: tree(path) for path in (course / "submitted").glob("*/week06")}
        rows = {}
        if (course / "intake-week06.csv").exists():
            with (course / "intake-week06.csv").open(encoding="utf-8", newline="") as stream:
                for row in csv.DictReader(stream):
                    rows.setdefault(row["who"], []).append((row["what"], row["what to do"]))
        said = capsys.readouterr()
        return code, submitted, rows, said.out + said.err

    of.course, of.source = course, source
    return of
