"""nbgrader's GenerateAssignment for the week: what has been released is not lost to a change that can't be made."""

import shutil
from pathlib import Path

import nbformat
from nbgrader import utils
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.converters import GenerateAssignment, NbGraderException

KINDS = {  # nbgrader's name for the cells of a kind: which cells they are
    "grade_cells": utils.is_grade,
    "solution_cells": utils.is_solution,
    "task_cells": utils.is_task,
    "source_cells": lambda cell: any(
        is_kind(cell) for is_kind in (utils.is_grade, utils.is_solution, utils.is_locked, utils.is_task)
    ),
}


class WeekGenerate(GenerateAssignment):
    """GenerateAssignment, which asks the gradebook before it removes anything, and puts back what it has removed."""

    def start(self):
        if not self.no_database:
            self._refuse_other_cells()
        release = Path(self.coursedir.format_path(self.coursedir.release_directory, ".", self.coursedir.assignment_id))
        release = Path(*release.parts)  # without the "." that stands for the student
        kept = release.with_name(f".{release.name}.kept")
        if kept.is_dir():  # of a run that was stopped
            _put_back(kept, release)
        if release.is_dir():
            shutil.copytree(release, kept)
        try:
            super().start()
        except BaseException:
            if kept.is_dir():
                _put_back(kept, release)
                self.log.error("Nothing is generated; the release of before is in its place: %s", release)
            raise
        shutil.rmtree(kept, ignore_errors=True)

    def _refuse_other_cells(self):
        """nbgrader can't add a cell to what has submissions, or take one away; it finds that out half-way."""
        name = self.coursedir.assignment_id
        with Gradebook(self.coursedir.db_url, self.coursedir.course_id) as gradebook:
            try:
                assignment = gradebook.find_assignment(name)
            except MissingEntry:
                return
            count = len(assignment.submissions)
            before = {notebook.name: _in_gradebook(notebook) for notebook in assignment.notebooks}
        if not count or not before:
            return
        source = Path(self.coursedir.format_path(self.coursedir.source_directory, ".", name))
        now = {path.stem: _in_notebook(path) for path in sorted(source.glob("*.ipynb"))}
        if now == before:
            return
        old, new = ({cell for cells in all_cells.values() for _, cell in cells} for all_cells in (before, now))
        differ = {"new": new - old, "gone": old - new}
        what = [f"{word}: {', '.join(sorted(cells))}" for word, cells in differ.items() if cells]
        sentence = (
            f"the source of {name} has other cells than were released ({'; '.join(what) or 'of another kind'}), and "
            f"{count} submissions hang on those: nothing is generated, and the release stays as it is. "
            "Put the cells back as they were, or give the new ones out as an assignment of their own."
        )
        self.log.error(sentence)
        raise NbGraderException(sentence)


def _put_back(kept, release):
    shutil.rmtree(release, ignore_errors=True)
    kept.rename(release)


def _in_gradebook(notebook):
    return {(kind, cell.name) for kind in KINDS for cell in getattr(notebook, kind)}


def _in_notebook(path):
    cells = nbformat.read(path, as_version=4).cells
    return {
        (kind, cell.metadata.nbgrader["grade_id"]) for kind, is_kind in KINDS.items() for cell in cells if is_kind(cell)
    }
