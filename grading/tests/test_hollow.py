"""Programs that compute nothing earn next to nothing: a test that compares code with itself has its other half."""

import json
import subprocess
import sys
import tomllib

import pytest

from grading.marks import by_part
from grading.patches import MISTAKES, REFERENCE, ROOT, load_variants, materialise

FOLDER = MISTAKES / "hollow"
PROGRAMS = {
    entry["id"]: entry
    for path in sorted(FOLDER.glob("*.toml"))
    for entry in tomllib.loads(path.read_text(encoding="utf-8"))["variant"]
}
RUN = """
import json, sys
from grading.runs import reports
print("RESULT" + json.dumps(dict(reports(json.loads(sys.argv[1])))))
"""


@pytest.fixture(scope="module")
def tests(tmp_path_factory):
    """{program: the report of all tests on it}, from a process without this pytest."""
    room = tmp_path_factory.mktemp("hollow")
    for name, program in load_variants(FOLDER).items():
        materialise(REFERENCE, [program], room / name)
    folders = json.dumps({name: str(room / name) for name in PROGRAMS})
    run = subprocess.run([sys.executable, "-c", RUN, folders], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout.split("RESULT")[-1])


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_that_computes_nothing_earns_no_more_than_it_says(name, tests):
    earned = {part: marks.earned for part, marks in by_part(tests[name]).items()}
    assert {part: earned[part] for part, most in PROGRAMS[name]["most"].items() if earned[part] > most} == {}
