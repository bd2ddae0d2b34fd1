"""What a student installs: pyproject.toml of the bundle, derived from the project's own."""

import json
import tomllib

from grading.paths import ROOT

PARTS = ("student", "notebooks")  # of what set_up.py installs, those that a student needs


def student_pyproject():
    """The text of the bundle's pyproject.toml: the course library, its tests, and what a student sets up."""
    own = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = {key: value for key, value in own["project"].items() if key != "optional-dependencies"}
    parts = {part: own["tool"]["set_up"][part] for part in PARTS}
    named = {name for names in parts.values() for name in names}
    extras = {name: needs for name, needs in own["project"]["optional-dependencies"].items() if name in named}
    tables = {
        "build-system": own["build-system"],
        "project": project,
        "project.optional-dependencies": extras,
        "tool.set_up": parts,
        "tool.setuptools": own["tool"]["setuptools"],
        "tool.pytest.ini_options": own["tool"]["pytest"]["ini_options"],
    }
    return "\n".join(f"[{name}]\n{_lines(table)}" for name, table in tables.items())


def _lines(table):
    """A flat TOML table; JSON writes texts, lists and truth values as TOML does."""
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in table.items())
