"""Where things lie in the project: every other module takes its folders from here."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "reference"  # the one marked source
EXERCISES = ROOT / "exercises_en"  # what students get, generated from it
