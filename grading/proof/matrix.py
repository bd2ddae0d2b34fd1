"""The kill matrix: every mistake and every right program against every test.

    python -m grading matrix [--write-fingerprints] [--out FOLDER]

It fails where a named test lets its mistake through, where a test of another part goes red, where a
right program is rejected, where a test rejects nothing, or where a tolerance is nearer than ten
times to a mistake or to the noise of right programs (exceptions: grading/proof/margins.toml). A run with
other inputs, as a grade has them, must say the same of right programs and of mistakes.
"""

import csv
import random
import sys
import tempfile
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from grading.paths import REFERENCE, ROOT
from grading.proof import fingerprints
from grading.proof.bank import OverlapError, load_metadata, load_mistakes, load_variants, materialise
from grading.proof.grid import lines as grid_lines
from grading.proof.grid import problems as grid_problems
from grading.proof.runs import FILES, RunError, files_that_ask, reports
from machinery import naming, parts
from nanolm.command_line import counted

HELP = "every known mistake and every right program against every test"
MARGIN = 10
PAIRS = 120  # pairs of mistakes in one program
MARGINS = ROOT / "grading" / "proof" / "margins.toml"
OUT = ROOT / "build" / "matrix"
EVERY = [file for file in FILES if file != "tests/test_memory.py"]  # advice rejects nobody
OTHER_SEED = 31337  # of the inputs that only a grade has


@dataclass
class Matrix:
    """What the runs said: per mistake and variant, the tests that are not passed."""

    tests: dict = field(default_factory=dict)  # test -> part
    files: dict = field(default_factory=dict)  # part -> files of its tests
    red: dict = field(default_factory=dict)  # mistake -> {test: its entry in the report}
    entries: dict = field(default_factory=dict)  # mistake -> all entries of its report
    passed: dict = field(default_factory=dict)  # mistake -> tests that it passes
    elsewhere: dict = field(default_factory=dict)  # mistake -> tests of its part's files that it fails, other inputs
    rejected: dict = field(default_factory=dict)  # (variant, how it was run) -> tests that are not passed
    noise: dict = field(default_factory=dict)  # test -> largest difference / tolerance of right programs
    named: dict = field(default_factory=dict)  # mistake -> first id that naming gives
    pairs: dict = field(default_factory=dict)  # (mistake, mistake) -> ids that naming gives
    problems: list = field(default_factory=list)


def ask_all(matrix, room, jobs):
    """Run everything and fill the matrix."""
    variants, mistakes = load_variants(), load_mistakes()
    for threads, seed in ((1, 0), (2, 0), (1, OTHER_SEED)):
        what = f"{threads} threads" if seed == 0 else "other inputs"
        folders = {(name, what): program(room, variant) for name, variant in variants.items()}
        folders[("reference", what)] = REFERENCE
        asked = {(name, what): asking(variant) for name, variant in variants.items()} | {("reference", what): EVERY}
        for key, tests in progress(f"variants, {what}", folders, asked, jobs, f"--threads={threads}", seed_of(seed)):
            note_variant(matrix, key, tests, variants)
    folders = {name: program(room, mistake) for name, mistake in mistakes.items()}
    asked = {name: asking(mistake) for name, mistake in mistakes.items()}
    for name, tests in progress("mistakes", folders, asked, jobs):
        matrix.red[name] = {test["name"]: test for test in tests if test["outcome"] == "failed"}
        matrix.entries[name] = tests
        matrix.passed[name] = {test["name"] for test in tests if test["outcome"] == "passed"}

    for part, files in matrix.files.items():
        own = {name: folder for name, folder in folders.items() if mistakes[name].part == part}
        asked = dict.fromkeys(own, sorted(files))
        for name, tests in progress(f"{part}, other inputs", own, asked, jobs, seed_of(OTHER_SEED)):
            matrix.elsewhere[name] = {test["name"] for test in tests if test["outcome"] == "failed"}
    return mistakes, variants


def program(room, *changes):
    """The folder of the reference with these changes made."""
    folder = room / "+".join(change.id for change in changes)
    materialise(REFERENCE, changes, folder)
    return folder


def asking(*changes):
    """The test files that can tell these changes from the reference. Of the others the reference's own run speaks."""
    changed = {edit.file for change in changes for edit in change.edits}
    return [file for file in files_that_ask(*changed) if file in EVERY]


def seed_of(seed):
    """The option that draws the inputs from this seed."""
    return f"--draw-seed={seed}"


def progress(what, folders, asked, jobs, *options):
    """(key, tests) of every run, counted on the terminal; RunError at the first run without a report.

    `asked` are the test files of each key.
    """
    done = reports(folders, lambda key: (*asked[key], *options), jobs)
    for key, tests in counted(what, done, len(folders)):
        if isinstance(tests, RunError):
            raise tests
        yield key, tests


def note_variant(matrix, key, tests, variants):
    core_only = key[0] in variants and variants[key[0]].only == "core"
    asked = [test for test in tests if test["part"] in (parts.CORE if core_only else parts.PARTS)]
    matrix.rejected[key] = [test["name"] for test in asked if test["outcome"] != "passed"]
    for test in asked:
        matrix.tests[test["name"]] = test["part"]
        matrix.files.setdefault(test["part"], set()).add(test["id"].split("::")[0])
        worst = max([matrix.noise.get(test["name"], 0.0), *test["measured"]])
        matrix.noise[test["name"]] = worst


def judge(matrix, mistakes, metadata, exceptions):
    """Note every way in which the matrix is not what it promises."""
    say = matrix.problems.append
    for (name, what), red in matrix.rejected.items():
        if red:
            say(f"the right program {name} is rejected ({what}) by {', '.join(red)}")
    for name, mistake in mistakes.items():
        test = metadata[name]["test"]
        if test not in matrix.tests:
            say(f"{name} names {test}, and there is no such test")
        elif test not in matrix.red[name]:
            say(f"{test} lets {name} through; red: {', '.join(matrix.red[name]) or 'none'}")
        for other, entry in matrix.red[name].items():
            if entry["part"] != mistake.part:
                say(f"{name} of {mistake.part} turns {other} of {entry['part']} red")
        elsewhere = matrix.elsewhere[name]
        if test in matrix.red[name] and test not in elsewhere:
            say(f"{test} lets {name} through with other inputs")
        if len(flipped := sorted(elsewhere & matrix.passed[name])) > 1:
            say(f"{name} passes {', '.join(flipped)} with public inputs only: it would be taken for a table of answers")
    killers = {test for red in matrix.red.values() for test in red}
    for test in matrix.tests:
        if test not in killers:
            say(f"{test} rejects no mistake")
    used = set()
    for test, (noise, nearest, mistake) in margins(matrix, metadata).items():
        for kind, margin, detail in (("noise", 1 / noise if noise else None, ""), ("mistake", nearest, mistake)):
            if margin is not None and margin < MARGIN:
                if (test, kind) in exceptions:
                    used.add((test, kind))
                else:
                    say(f"{test}: the margin to the {kind} {detail} is {margin:.1f}, under {MARGIN}".replace("  ", " "))
    for test, kind in sorted(set(exceptions) - used):
        say(f"margins.toml excuses {test} ({kind}), which needs no excuse")


def margins(matrix, metadata):
    """test -> noise of right programs over the tolerance; distance of its nearest own mistake over it, and which.

    A mistake that a test sees by something else than a distance (a shape, a name, an exception) has no margin.
    """
    found = {}
    for test in matrix.tests:
        nearest = (None, "")
        for mistake, red in matrix.red.items():
            if metadata[mistake]["test"] == test and test in red:
                measured = red[test]["measured"]
                if measured and measured[-1] > 1 and (nearest[0] is None or measured[-1] < nearest[0]):
                    nearest = (measured[-1], mistake)
        found[test] = (matrix.noise.get(test, 0.0), *nearest)
    return found


def load_exceptions():
    """(test, "noise" or "mistake") -> the reason why its margin may be under ten."""
    entries = tomllib.loads(MARGINS.read_text(encoding="utf-8")).get("margin", [])
    return {(entry["test"], entry["kind"]): entry["reason"] for entry in entries}


def first_named(tests):
    """Ids that naming gives to a run, the surest of each part first."""
    collected = naming.Naming()
    for test in tests:
        collected.note_entry(test)
    return [named.id for part in parts.PARTS for named in collected.named(part)]


def same(metadata, a, b):
    """Whether two ids stand for one behaviour."""
    return metadata[a].get("same_as", a) == metadata[b].get("same_as", b)


def name_all(matrix, mistakes, metadata, room, jobs):
    """Name every mistake alone, and pairs of mistakes in one program."""
    for name in matrix.red:
        matrix.named[name] = (first_named(matrix.entries[name]) or [None])[0]
    chosen, folders = random.Random(6), {}
    ids = sorted(mistakes)
    while len(folders) < PAIRS:
        a, b = chosen.sample(ids, 2)
        if chosen.random() < 0.5:  # half of them within one part, where one hides the other
            b = chosen.choice([name for name in ids if mistakes[name].part == mistakes[a].part])
        if a == b or (a, b) in folders:
            continue
        try:
            folders[(a, b)] = program(room, mistakes[a], mistakes[b])
        except OverlapError:
            continue
    asked = {(a, b): asking(mistakes[a], mistakes[b]) for a, b in folders}
    for pair, tests in progress("pairs of mistakes", folders, asked, jobs):
        matrix.pairs[pair] = first_named(tests)


def accuracy(matrix, metadata):
    """Share of mistakes whose first name is right, and of pairs of which at least one is named."""
    alone = [name for name, found in matrix.named.items() if found is None or not same(metadata, name, found)]
    pairs = [pair for pair, found in matrix.pairs.items() if not any(same(metadata, a, b) for a in pair for b in found)]
    return alone, pairs


def write_table(matrix, metadata, out):
    """The matrix as CSV: a row for each mistake, with its named test and all red ones."""
    with (out / "matrix.csv").open("w", encoding="utf-8", newline="") as stream:
        rows = csv.writer(stream)
        rows.writerow(("mistake", "part", "named test", "caught", "first named as", "red tests"))
        for name, red in sorted(matrix.red.items()):
            test = metadata[name]["test"]
            rows.writerow((name, metadata[name]["part"], test, test in red, matrix.named.get(name), " ".join(red)))


def draw(matrix, metadata, out):
    """The matrix as a picture: mistakes down, tests across, in the order of the week."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    order = {part: index for index, part in enumerate(parts.PARTS)}
    mistakes = sorted(matrix.red, key=lambda name: (order[metadata[name]["part"]], metadata[name]["test"], name))
    tests = sorted(matrix.tests, key=lambda name: order[matrix.tests[name]])
    figure, axes = pyplot.subplots(figsize=(0.11 * len(tests) + 5, 0.13 * len(mistakes) + 3), dpi=110)
    for row, name in enumerate(mistakes):
        red = [tests.index(test) for test in matrix.red[name]]
        axes.plot(red, [row] * len(red), "s", color="#9ecae1", markersize=4)
        if metadata[name]["test"] in matrix.red[name]:
            axes.plot([tests.index(metadata[name]["test"])], [row], "s", color="#d95f02", markersize=4)
    axes.set_yticks(range(len(mistakes)), mistakes, fontsize=5)
    axes.set_xticks(range(len(tests)), [test.removeprefix("test_") for test in tests], fontsize=5, rotation=90)
    for axis, names, part_of in (("x", tests, matrix.tests.get), ("y", mistakes, lambda m: metadata[m]["part"])):
        for index in range(1, len(names)):
            if part_of(names[index]) != part_of(names[index - 1]):
                line = axes.axvline if axis == "x" else axes.axhline
                line(index - 0.5, color="#cccccc", linewidth=0.6)
    axes.set_xlim(-1, len(tests))
    axes.set_ylim(len(mistakes), -1)
    axes.set_title("Which test turns red for which mistake (orange: the test that is named for it)")
    figure.tight_layout()
    figure.savefig(out / "matrix.png")
    pyplot.close(figure)


def add_arguments(parser):
    parser.add_argument("--write-fingerprints", action="store_true", help="store what the mistakes answer")
    parser.add_argument("--out", type=Path, default=OUT, help="folder of the table and the picture")
    parser.add_argument("--jobs", type=int, default=2, help="runs side by side")


def run(args):
    """Run, judge, write, print; the exit code is 1 where something is not as promised."""
    try:
        return _run(args)
    except RunError as error:
        print(error, file=sys.stderr)
        return 1


def _run(args):
    args.out.mkdir(parents=True, exist_ok=True)
    matrix, metadata = Matrix(), load_metadata()
    with tempfile.TemporaryDirectory() as room:
        mistakes, variants = ask_all(matrix, Path(room), args.jobs)
        if args.write_fingerprints:
            fingerprints.write(matrix.red, args.jobs)
        name_all(matrix, mistakes, metadata, Path(room), args.jobs)
    judge(matrix, mistakes, metadata, load_exceptions())
    matrix.problems += grid_problems(matrix.tests, mistakes)
    alone, pairs = accuracy(matrix, metadata)
    write_table(matrix, metadata, args.out)
    draw(matrix, metadata, args.out)
    right_alone, right_pairs = 1 - len(alone) / len(matrix.named), 1 - len(pairs) / len(matrix.pairs)
    if right_alone < 0.95:
        matrix.problems.append(f"only {right_alone:.0%} of mistakes are named right; wrong: {', '.join(alone)}")
    if right_pairs < 0.80:
        matrix.problems.append(f"only {right_pairs:.0%} of pairs have one of the two named")
    print(f"The matrix as a picture and a table: {args.out / 'matrix.png'}, {args.out / 'matrix.csv'}")
    for problem in matrix.problems:
        print(f"PROBLEM  {problem}")
    print(*grid_lines(mistakes), sep="\n")
    print(*summary(matrix, metadata, variants, right_alone, right_pairs), sep="\n")
    return 1 if matrix.problems else 0


def summary(matrix, metadata, variants, right_alone, right_pairs):
    """One line for each count."""
    known = [value for value in margins(matrix, metadata).values() if value[1] is not None]
    noisiest = max(matrix.noise.values())
    caught = sum(metadata[name]["test"] in red for name, red in matrix.red.items())
    rejected = sum(map(bool, matrix.rejected.values()))
    nearest = min(value[1] for value in known)
    yield f"mistakes: {len(matrix.red)}, of which {caught} are caught by their named test"
    yield f"right programs: {len(variants) + 1}, with 1 and 2 threads, and other inputs; {rejected} runs rejected"
    yield f"tests: {len(matrix.tests)}"
    yield f"margins: the nearest mistake is {nearest:.0f} tolerances away, a tolerance is {1 / noisiest:.0f} times"
    yield f"    the noise of right programs; {len(load_exceptions())} exceptions, each with its reason"
    yield f"naming: {right_alone:.1%} of mistakes by their own name first, at least one of the two in {right_pairs:.1%}"
    yield f"    of {len(matrix.pairs)} pairs"
    yield f"problems: {len(matrix.problems)}"
