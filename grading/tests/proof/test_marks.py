"""Marks: what the points add up to, and what students who do all, only the core, or only the bonus earn."""

import shutil

import pytest
import reports_apart

from grading.paths import ROOT
from grading.proof.marks import WEEK, Marks, by_part, core_and_bonus, marks

REFERENCE, STUBS = ROOT / "reference", ROOT / "exercises_en"
CORE, DEPTH = WEEK["CORE"], WEEK["DEPTH"]

# From the reference to a student who never opened a depth part: (file, what stands there, what they have).
WITHOUT_DEPTH = [
    ("attention.py", "return seen if window is None else seen & (distance < window)", "return seen"),
    ("attention.py", "return cap * torch.tanh(z / cap)", 'raise NotImplementedError("softcap is not started.")'),
    ("attention.py", "        if cfg.qk_norm:\n            q, k = self.q_norm(q), self.k_norm(k)\n", ""),
    ("attention.py", "        if cache is not None:\n            k, v = cache.append(k, v)  # (B, K, S, H)\n", ""),
    ("attention.py", "attend(q, k, v, self.window, cfg.attn_softcap)", "attend(q, k, v, None, None)"),
    ("budget.py", '(2 if cfg.ffn == "gelu" else 3)', "3"),
    ("budget.py", "    if cfg.bias:\n", "    if False:\n"),
    ("budget.py", "    if cfg.qk_norm:\n", "    if False:\n"),
    ("budget.py", '4 if cfg.norm_position == "sandwich" else 2', "2"),
    ("budget.py", 'cfg.T_max * cfg.D if cfg.positions == "learned" else 0', "0"),
]


def reference_with(folder, *edits):
    """A copy of the reference in a folder; each edit's text must stand there exactly once."""
    shutil.copytree(REFERENCE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    for file, old, new in edits:
        text = (folder / file).read_text(encoding="utf-8")
        assert text.count(old) == 1, (file, old)
        (folder / file).write_text(text.replace(old, new), encoding="utf-8")
    return folder


def body(folder, file, function):
    """The last function or class of that name in a file, as text, to the next one at the margin."""
    text = (folder / file).read_text(encoding="utf-8")
    start = max(text.rfind(f"\ndef {function}("), text.rfind(f"\nclass {function}("))
    end = text.find("\n\n\n", start)
    return text[start : end if end > 0 else len(text)]


def core_only_in(folder):
    reference_with(folder, *WITHOUT_DEPTH)
    shutil.copy(STUBS / "objectives.py", folder)
    modules = folder / "modules.py"
    solved, stub = (body(where, "modules.py", "rmsnorm_backward") for where in (REFERENCE, STUBS))
    modules.write_text(modules.read_text(encoding="utf-8").replace(solved, stub), encoding="utf-8")
    return folder


def depth_only_in(folder):
    """The stubs, with what can be written without the core: objectives, RMSNorm's backward, the soft-cap."""
    shutil.copytree(STUBS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(REFERENCE / "objectives.py", folder)
    for file, function in (("modules.py", "rmsnorm_backward"), ("attention.py", "softcap")):
        solved, stub = (body(where, file, function) for where in (REFERENCE, folder))
        text = (folder / file).read_text(encoding="utf-8")
        (folder / file).write_text(text.replace(stub, solved), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    room = tmp_path_factory.mktemp("marks")
    core_only, depth_only = core_only_in(room / "core_only"), depth_only_in(room / "depth_only")
    return reports_apart.reports({"everything": REFERENCE, "core_only": core_only, "depth_only": depth_only})


@pytest.fixture(scope="module")
def everything(reports):
    return reports["everything"]


@pytest.fixture(scope="module")
def core_only(reports):
    return reports["core_only"]


@pytest.fixture(scope="module")
def depth_only(reports):
    return reports["depth_only"]


def names(tests, outcome):
    return {test["name"] for test in tests if test["outcome"] == outcome}


def test_the_core_is_100_points(everything):
    assert sum(test["points"] for test in everything if test["part"] in CORE) == 100


def test_points_are_whole_and_every_part_has_some(everything):
    assert all(isinstance(test["points"], int) and test["points"] >= 0 for test in everything)
    assert [part for part, found in by_part(everything).items() if not found.possible] == []


def test_the_reference_earns_everything(everything):
    core, bonus = core_and_bonus(everything)
    assert core == Marks(100, 100)
    assert bonus.earned == bonus.possible > 0
    assert names(everything, "passed") == {test["name"] for test in everything}


def test_core_only_earns_100_and_no_bonus(core_only, everything):
    assert core_and_bonus(core_only) == (Marks(100, 100), Marks(0, core_and_bonus(everything)[1].possible))


def test_core_only_made_no_mistake(core_only):
    assert names(core_only, "failed") == set()
    assert {test["part"] for test in core_only if test["outcome"] != "passed"} == set(DEPTH)


# What needs neither RMSNorm nor attention. The rest of its part waits.
ALONE = {
    "backward": {
        "test_backward_returns_two_gradients",
        "test_backward_of_the_weight_sums_over_rows",
        "test_backward_matches_stored_answers",
        "test_backward_is_your_own",
        "test_backward_matches_autograd",
        "test_backward_is_the_same_with_gradients",
        "test_backward_of_edge_and_equal_sizes",
        "test_backward_runs_in_fp32",
        "test_backward_takes_rows_of_any_size",
        "test_backward_leaves_its_inputs_as_they_are",
        "test_backward_follows_its_device",
    },
    "softcap": {
        "test_softcap_values",
        "test_softcap_keeps_shape_dtype_and_input",
        "test_softcap_lets_the_gradient_through",
        "test_softcap_accepts_strided_and_empty_input",
        "test_softcap_of_any_size",
    },
}


def test_depth_only_earns_no_core(depth_only, everything):
    core, bonus = core_and_bonus(depth_only)
    assert core == Marks(0, 100)
    alone = set.union(*ALONE.values(), *[names_of(everything, "objectives")])
    assert names(depth_only, "passed") == alone
    assert bonus.earned == sum(test["points"] for test in everything if test["name"] in alone) > 0
    assert by_part(depth_only)["objectives"] == by_part(everything)["objectives"]


def test_depth_only_made_no_mistake(depth_only):
    assert names(depth_only, "failed") == set()
    waiting = {test["part"] for test in depth_only if test["outcome"] == "waiting"}
    assert "softcap" in waiting


def names_of(tests, part):
    return {test["name"] for test in tests if test["part"] == part}


def test_nobody_is_told_other_totals(everything, core_only, depth_only):
    """What a part is worth does not depend on who is asked."""
    possible = [{part: found.possible for part, found in by_part(tests).items()} for tests in (everything, core_only)]
    assert possible[0] == possible[1] == {part: found.possible for part, found in by_part(depth_only).items()}


def made(part, outcome, points):
    return {"part": part, "outcome": outcome, "points": points, "name": "test_x"}


def test_points_are_earned_by_passing_only():
    tests = [made("rope", outcome, 2) for outcome in ("passed", "failed", "not started", "waiting")]
    assert marks(tests) == Marks(2, 8)
    assert marks([]) == Marks(0, 0)


def test_parts_are_added_up_apart():
    tests = [made("rope", "passed", 3), made("block", "failed", 4), made("softcap", "passed", 5)]
    found = by_part(tests)
    assert list(found) == list(CORE + DEPTH)
    assert (found["rope"], found["block"], found["softcap"]) == (Marks(3, 3), Marks(0, 4), Marks(5, 5))
    assert found["window"] == Marks(0, 0)
    assert core_and_bonus(tests) == (Marks(3, 7), Marks(5, 5))
