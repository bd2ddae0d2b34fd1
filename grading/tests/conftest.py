"""The course team's tests: on one thread, as threads would only wait for each other on tiny tensors."""

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
