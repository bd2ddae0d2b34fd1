"""What a course on GitHub needs: the students' template repository, and an autograder for Classroom 50.

    OUT/github/template/             the bundle, with a workflow that runs the public tests on every push
    OUT/github/autograders/week06/   Classroom 50's autograder.py, and the tests that it asks

Neither holds a solution or the secret: whoever may push to a repository can read what runs there.
"""

import shutil
from pathlib import Path

from grading.week.release.bundle import ASSIGNMENT
from grading.week.release.errors import ReleaseError

TEMPLATES = Path(__file__).parent / "github_templates"
WORKFLOW = Path(".github", "workflows", "check.yml")
MARK = "made by `python -m grading release --github`\n"


def write_github(out, bundle):
    """Write both into OUT/github from the checked bundle; that folder. What is there must be of an earlier release."""
    place = Path(out) / "github"
    if place.exists() and not (place / ".release").is_file():
        raise ReleaseError(f"{place} is not of a release and would be lost: move it away, or name another --out.")
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    (place / ".release").write_text(MARK, encoding="utf-8")
    template, autograder = place / "template", place / "autograders" / ASSIGNMENT
    shutil.copytree(bundle, template)
    (template / WORKFLOW).parent.mkdir(parents=True)
    shutil.copy(TEMPLATES / WORKFLOW.name, template / WORKFLOW)
    autograder.mkdir(parents=True)
    shutil.copy(TEMPLATES / "autograder.py", autograder)
    for name in ("nanolm", "tests", "pyproject.toml", "constraints.txt", "LICENSE"):
        source = Path(bundle) / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, autograder / "week" / name)
    return place
