"""proof/facts.toml: every statement of the lessons has a place or a reason, and every place exists and passes."""

import os
import re
import tomllib

import pytest
import warm

from grading.paths import ROOT

pytestmark = pytest.mark.proof

TABLE = ROOT / "grading" / "proof" / "facts.toml"
FACTS = tomllib.loads(TABLE.read_text(encoding="utf-8"))["fact"]
each_fact = pytest.mark.parametrize("fact", FACTS, ids=[fact["fact"][:60] for fact in FACTS])


def places(folder):
    """Node ids of the table in one folder, each once."""
    return sorted({place for fact in FACTS for place in fact["where"] if place.startswith(f"{folder}/")})


def run(nodes, implementation):
    """Run these tests: outcome -> ids without parameters, and everything that pytest printed."""
    environment = {name: value for name, value in os.environ.items() if name != "NANOLM_IMPL"}
    if implementation:
        environment["NANOLM_IMPL"] = implementation
    finished = warm.python("-m", "pytest", "-rA", "-q", "-p", "no:cacheprovider", *nodes, env=environment)
    found = {}
    for outcome, node in re.findall(r"^([A-Z ]+?) ((?:grading/)?tests/\S+?::\w+)", finished.stdout, re.MULTILINE):
        found.setdefault(outcome, set()).add(node)
    return found, finished.stdout + finished.stderr


@each_fact
def test_every_fact_has_a_place_or_a_reason(fact):
    assert set(fact) <= {"fact", "where", "later"} and fact["fact"].strip()
    assert fact["where"] or fact.get("later", "").strip(), "neither a place nor a reason"
    assert len(set(fact["where"])) == len(fact["where"])


def test_no_fact_stands_twice():
    assert len({fact["fact"] for fact in FACTS}) == len(FACTS)


def test_every_place_lies_in_one_of_the_two_folders():
    everywhere = {place for fact in FACTS for place in fact["where"]}
    assert everywhere == {*places("tests"), *places("grading/tests")}


@pytest.mark.parametrize(("folder", "implementation"), [("tests", "reference"), ("grading/tests", None)])
def test_every_place_exists_and_passes(folder, implementation):
    found, printed = run(places(folder), implementation)
    assert set(found) == {"PASSED"}, printed[-3000:]
    assert found["PASSED"] == set(places(folder))


def test_a_place_that_does_not_exist_is_noticed():
    file = "grading/tests/library/test_config.py"
    found, printed = run([f"{file}::test_presets", f"{file}::test_no"], None)
    assert "PASSED" not in found and "not found" in printed
