"""What README.md names is there."""

import re

from grading.paths import ROOT

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def test_every_make_target_exists():
    named = set(re.findall(r"make ([a-z]+)(?=`|  +#)", TEXT))
    assert {"demo", "test", "check", "stubs"} <= named
    assert named <= set(re.findall(r"^([a-z]+):", MAKEFILE, flags=re.MULTILINE))


def test_every_path_exists():
    named = set(re.findall(r"`([\w./]+(?:/|\.py|\.txt))`", TEXT)) | {"LICENSE"}
    named |= set(re.findall(r"^    ([\w.]+(?:/|\.txt)) ", TEXT, flags=re.MULTILINE))
    named |= set(re.findall(r"-[cr] (\S+\.txt)", TEXT))
    assert {"nanolm/", "exercises_en/modules.py", "constraints.txt", "requirements-weights.txt"} <= named
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []


def test_every_test_exists():
    source = "".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "tests").glob("test_*.py")))
    named = set(re.findall(r"\btest_\w+\b(?!\.py)", TEXT))
    assert named and [name for name in named if f"def {name}(" not in source] == []
