"""The instructor's side: what makes, checks and grades the week. No student copy holds it."""

import sys
from pathlib import Path

# tests/ is a folder of scripts that import each other by name, as pytest has it: parts, draw, naming, ...
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
