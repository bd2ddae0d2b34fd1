"""The mistakes in other hands: the data is whole, and the verdict on a name says what it promises."""

import pytest

from grading.proof import planted
from grading.proof.bank import Mistake, PatchError, load_mistakes, materialise

CORE = {"rmsnorm", "swiglu", "rope", "attention", "block"}
STYLES = planted.load_styles()


@pytest.mark.parametrize("name", STYLES)
def test_every_edit_applies_to_its_style(name, tmp_path):
    base = STYLES[name].write_program(tmp_path / "right")
    for mistake in STYLES[name].mistakes.values():
        assert materialise(base, (mistake,), tmp_path / "wrong"), mistake.id


def test_half_of_the_styles_are_held_out_and_each_plants_mistakes_in_every_core_part():
    held_out = [style.held_out for style in STYLES.values()]
    assert sum(held_out) * 2 == len(held_out)
    for style in STYLES.values():
        assert {mistake.part for mistake in style.mistakes.values()} >= CORE, style.name


def test_most_mistakes_of_the_core_are_planted_in_at_least_four_styles():
    core = [mistake.id for mistake in load_mistakes().values() if mistake.part in CORE]
    often = [name for name in core if sum(name in style.mistakes for style in STYLES.values()) >= 4]
    assert len(often) >= 0.6 * len(core)


def test_an_id_in_the_file_of_another_part_is_refused(tmp_path):
    (tmp_path / "shared.toml").write_text("as_in_the_bank = []\n", encoding="utf-8")
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "style.toml").write_text('title = "odd"\nheld_out = true\n', encoding="utf-8")
    entry = '[[mistake]]\nid = "rmsnorm-centers"\nfile = "modules.py"\nfind = "a"\nwrite = "b"\n'
    (tmp_path / "odd" / "rope.toml").write_text(entry, encoding="utf-8")
    with pytest.raises(PatchError, match="odd plants rmsnorm-centers as one of rope"):
        planted.load_styles(tmp_path)


class Named:
    def __init__(self, name, *explains):
        self.id, self.explains, self.others = name, frozenset(explains), ()


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ([Named("r1", "test_rope_a", "test_rope_b")], "right"),
        ([Named("twin", "test_rope_a", "test_rope_b")], "right"),
        ([Named("r1", "test_rope_a")], "in part"),
        ([Named("r1", "test_rope_a"), Named("r2", "test_rope_b")], "in part"),
        ([Named("r2", "test_rope_a", "test_rope_b")], "wrong"),
        ([], "unknown"),
    ],
    ids=["alone", "its twin", "a test left open", "with another", "another alone", "nothing"],
)
def test_the_verdict_on_what_naming_says(named, expected, monkeypatch):
    class Says:
        def note_entry(self, entry):
            assert entry["part"] == "rope"

        def named(self, part):
            return named if part == "rope" else []

        def only_raises(self, part):
            return False

    monkeypatch.setattr(planted.naming, "Naming", Says)
    tests = [{"name": name, "part": "rope", "outcome": "failed"} for name in ("test_rope_a", "test_rope_b")]
    metadata = {"r1": {}, "r2": {}, "twin": {"same_as": "r1"}}
    kind, ids = planted.verdict(Mistake("r1", "rope", (), "r1"), tests, metadata)
    assert kind == expected
    assert ids == [each.id for each in named]


def test_the_summary_keeps_held_out_styles_apart():
    styles = {name: planted.Style(name, name, name == "b", {}) for name in "ab"}
    found = {("a", "r1"): ("right", ["r1"]), ("b", "r1"): ("wrong", ["r2"]), ("b", "r2"): ("right", ["r2"])}
    seen, held_out = planted.summary(styles, found)
    assert seen.startswith("naming, seen (a): right 100.0%") and seen.endswith("of 1")
    assert held_out.startswith("naming, held out (b): right 50.0%") and "wrong 50.0%, of 2" in held_out
