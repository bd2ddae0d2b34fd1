"""What a student installs: pyproject.toml of the bundle, derived from the project's own."""

import json
import tomllib

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from grading.paths import ROOT

PARTS = ("student", "notebooks")  # of what set_up.py installs, those that a student needs
ON_A_HUB = ("matplotlib", "ipywidgets")  # of what they bring, what the week's notebook draws with
TESTS_INSIDE = "nanolm.week_tests"  # where an installed library has the tests (nanolm/impl.py)


def student_pyproject():
    """The text of the bundle's pyproject.toml: the course library, its tests, and what a student sets up."""
    own = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = {key: value for key, value in own["project"].items() if not isinstance(value, dict)}
    parts = {part: own["tool"]["set_up"][part] for part in PARTS}
    named = {name for names in parts.values() for name in names}
    extras = {name: needs for name, needs in own["project"]["optional-dependencies"].items() if name in named}
    tables = {
        "build-system": own["build-system"],
        "project": project,
        "project.scripts": own["project"]["scripts"],
        "project.optional-dependencies": extras,
        "tool.set_up": parts,
        "tool.setuptools": own["tool"]["setuptools"],
        "tool.pytest.ini_options": own["tool"]["pytest"]["ini_options"],
    }
    return "\n".join(f"[{name}]\n{_lines(table)}" for name, table in tables.items())


def hub_pyproject():
    """The text of the pyproject.toml by which the library, with the week's tests inside, is installed on a JupyterHub.

    What the week computes and draws with is pinned as in the bundle; the hub's own Jupyter is left as it is.
    """
    own = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = {key: own["project"][key] for key in ("name", "version", "description", "requires-python", "license")}
    needed = {canonicalize_name(Requirement(text).name) for text in (*own["project"]["dependencies"], *ON_A_HUB)}
    project["dependencies"] = [line for name, line in _pins() if name in needed]
    inside = {f"{TESTS_INSIDE}{rest}": f"tests{rest.replace('.', '/')}" for rest in ("", ".machinery", ".golden")}
    tables = {
        "build-system": own["build-system"],
        "project": project,
        "project.scripts": own["project"]["scripts"],
        "tool.setuptools": {"packages": [*own["tool"]["setuptools"]["packages"], *inside]},
        "tool.setuptools.package-dir": inside,
        "tool.setuptools.package-data": dict.fromkeys(inside, ["*.toml", "*.safetensors"]),
    }
    return "\n".join(f"[{name}]\n{_lines(table)}" for name, table in tables.items())


def _pins():
    """(package's name, line that pins it) for each line of constraints.txt."""
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            yield canonicalize_name(Requirement(line).name), line


def _lines(table):
    """A flat TOML table; JSON writes texts, lists and truth values as TOML does."""
    return "".join(f"{json.dumps(key) if '.' in key else key} = {json.dumps(value)}\n" for key, value in table.items())
