"""The course team's tests: on one thread, as threads would only wait for each other on tiny tensors."""

import csv

import pytest
import torch

import grading  # noqa: F401  puts tests/ on the path

torch.set_num_threads(1)


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
