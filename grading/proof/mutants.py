"""Generated mutants of reference/: does any small change to the code pass every test?

    python -m grading mutants [FILE ...] [--every N]

cosmic-ray makes the mutants; each is asked by the test files that ask its file. A survivor must
stand in grading/proof/mutants.toml with the reason why it is the same program; anything else is a hole
in the tests.
"""

import difflib
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

from grading.paths import REFERENCE, ROOT
from grading.proof.runs import RunError, files_that_ask, reports
from nanolm.command_line import counted

HELP = "generated mutants of reference/ against the same tests"
EQUIVALENT = ROOT / "grading" / "proof" / "mutants.toml"
NEEDS_ARGUMENTS = ("core/VariableReplacer", "core/VariableInserter")
FILES = ("modules.py", "rope.py", "attention.py", "model.py", "budget.py", "objectives.py")


@dataclass(frozen=True)
class Mutant:
    """One changed file of the reference, and the change as old and new line."""

    file: str
    text: str
    old: str
    new: str


def mutants_of(file):
    """Every different mutant of one file of the reference."""
    code = (REFERENCE / file).read_text(encoding="utf-8")
    texts = {}
    for name in operator_names():
        if name in NEEDS_ARGUMENTS:
            continue
        operator, occurrence = get_operator(name)(), 0
        while (text := mutate_code(code, operator, occurrence)) is not None:
            texts.setdefault(text, None)
            occurrence += 1
    for text in texts:
        changed = [line for line in difflib.ndiff(code.splitlines(), text.splitlines()) if line[:2] in ("- ", "+ ")]
        old, new = (" ".join(line[2:].strip() for line in changed if line[0] == sign) for sign in "-+")
        yield Mutant(file, text, old, new)


def survivors(mutants, room, jobs):
    """Those of the mutants on which every test passes. A mutant that can't be imported is caught too."""
    mutants = list(mutants)
    folders = {number: written(mutant, room / str(number)) for number, mutant in enumerate(mutants)}
    left = []
    runs = reports(folders, lambda number: ("-x", *files_that_ask(mutants[number].file)), jobs)
    for number, tests in counted("mutants", runs, len(mutants)):
        if not isinstance(tests, RunError) and all(test["outcome"] in ("passed", "advice") for test in tests):
            left.append(mutants[number])
    return left


def written(mutant, folder):
    """The folder of the reference with the mutant's file in it."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in REFERENCE.glob("*.py"):
        text = mutant.text if path.name == mutant.file else path.read_text(encoding="utf-8")
        (folder / path.name).write_text(text, encoding="utf-8")
    return folder


def equivalents():
    """(file, old line, new line) -> the reason why this mutant is the same program."""
    entries = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8")).get("mutant", [])
    return {(entry["file"], entry["old"], entry["new"]): entry["reason"] for entry in entries}


def add_arguments(parser):
    parser.add_argument("files", nargs="*", default=FILES, metavar="FILE", help=f"some of {', '.join(FILES)}")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only every Nth mutant, for a quick look")
    parser.add_argument("--jobs", type=int, default=2, help="runs side by side")


def run(args):
    """Make, ask, list; the exit code is 1 where a mutant survives without a reason."""
    mutants = [mutant for file in args.files for mutant in mutants_of(file)][:: args.every]
    known = equivalents()
    with tempfile.TemporaryDirectory() as room:
        left = survivors(mutants, Path(room), args.jobs)
    unexplained = [mutant for mutant in left if (mutant.file, mutant.old, mutant.new) not in known]
    for mutant in unexplained:
        print(f"SURVIVES  {mutant.file}\n  - {mutant.old}\n  + {mutant.new}")
    alive = {(mutant.file, mutant.old, mutant.new) for mutant in left}
    stale = [key for key in known if key not in alive and key[0] in args.files] if args.every == 1 else []
    for file, old, new in stale:
        print(f"NO MUTANT  {file} has no survivor {old!r} -> {new!r}: take it out of {EQUIVALENT.name}")
    print(
        f"mutants: {len(mutants)}, caught {len(mutants) - len(left)}, the same program {len(left) - len(unexplained)}"
    )
    print(f"survivors without a reason: {len(unexplained)}")
    return 1 if unexplained or stale else 0
