"""Programs that compute nothing earn next to nothing: a test that compares code with itself has its other half."""

import pytest
import reports_apart

from grading.paths import REFERENCE
from grading.proof.bank import HOLLOW, load_variants, materialise
from grading.proof.marks import by_part

pytestmark = pytest.mark.proof

PROGRAMS = load_variants(HOLLOW)


@pytest.fixture(scope="module")
def tests(tmp_path_factory):
    """{program: the report of all tests on it}."""
    room = tmp_path_factory.mktemp("hollow")
    for name, program in PROGRAMS.items():
        materialise(REFERENCE, [program], room / name)
    return reports_apart.reports({name: room / name for name in PROGRAMS})


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_that_computes_nothing_earns_no_more_than_it_says(name, tests):
    earned = {part: marks.earned for part, marks in by_part(tests[name]).items()}
    assert {part: earned[part] for part, most in PROGRAMS[name].most.items() if earned[part] > most} == {}
