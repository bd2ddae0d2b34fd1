"""The bank's mistakes in other hands: are they caught there, and named as what they are?

    python -m grading styles [--style NAME ...] [--part PART ...] [--mistake ID ...] [--list]

    grading/proof/styles/STYLE/*.py         files of a right program; the reference lends those that are missing
    grading/proof/styles/STYLE/style.toml   title, held_out: nothing is tuned on a style that is held out
    grading/proof/styles/STYLE/PART.toml    the bank's mistakes in this style, in the bank's own form
    grading/proof/styles/shared.toml        as_in_the_bank: ids whose lines every style leaves as they were given

It fails where a style's program is rejected, where an edit does not apply, or where a mistake's named
test lets it through. How the mistakes are named is printed for seen and held-out styles apart.
"""

import shutil
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

from grading.paths import REFERENCE, ROOT
from grading.proof.bank import Mistake, PatchError, load_metadata, load_mistakes, materialise
from grading.proof.runs import RunError, reports
from machinery import judge, naming, parts
from nanolm.command_line import counted

HELP = "the bank's mistakes in other hands: are they caught there, and named?"
STYLES = ROOT / "grading" / "proof" / "styles"
VERDICTS = ("right", "a crash with its line", "in part", "unknown", "wrong")


@dataclass(frozen=True)
class Style:
    """One right program and the mistakes of the bank in its hand, by id."""

    name: str
    title: str
    held_out: bool
    mistakes: dict[str, Mistake]

    def write_program(self, into):
        """The whole right program in the folder `into`."""
        for folder in (REFERENCE, STYLES / self.name):
            into.mkdir(parents=True, exist_ok=True)
            for path in folder.glob("*.py"):
                shutil.copyfile(path, into / path.name)
        return into


def load_styles(folder=STYLES):
    """Every style by name; PatchError where an id is none of the bank's or stands in the file of another part."""
    bank = load_mistakes()
    shared = tomllib.loads((folder / "shared.toml").read_text(encoding="utf-8"))["as_in_the_bank"]
    styles = {}
    for path in sorted(folder.glob("*/style.toml")):
        about = tomllib.loads(path.read_text(encoding="utf-8"))
        own = load_mistakes(path.parent)
        for mistake in own.values():
            if mistake.id not in bank or bank[mistake.id].part != mistake.part:
                raise PatchError(f"{path.parent.name} plants {mistake.id} as one of {mistake.part}: the bank does not.")
        mistakes = {**{name: bank[name] for name in shared if name not in own}, **own}
        styles[path.parent.name] = Style(path.parent.name, about["title"], about["held_out"], mistakes)
    return styles


def verdict(mistake, tests, metadata):
    """One of VERDICTS, and the ids that naming gives: what a student hears who has made this mistake alone.

    Right says this mistake and nothing else; in part says something besides, leaves red tests open, or asks which of
    two it is that no test tells apart.
    """
    collected = naming.Naming()
    for test in tests:
        collected.note_entry(test)
    named = [each for part in parts.PARTS for each in collected.named(part)]
    true = [each for each in named if any(_same(metadata, name, mistake.id) for name in (each.id, *each.others))]
    red = {test["name"] for test in tests if test["outcome"] == "failed"}
    if not named:
        kind = "a crash with its line" if collected.only_raises(mistake.part) else "unknown"
    elif not true:
        kind = "wrong"
    else:
        alone = len(true) == len(named) and not any(each.others for each in named)
        whole = alone and red <= {test for each in named for test in each.explains}
        kind = "right" if whole else "in part"
    return kind, [each.id for each in named]


def _same(metadata, a, b):
    return metadata[a].get("same_as", a) == metadata[b].get("same_as", b)


def tests_of(part):
    """This part's tests, as pytest names them."""
    own = (test for name, test in judge.all_tests().items() if parts.part_of_test(name) == part)
    return tuple(f"tests/{test.__module__}.py::{test.__name__}" for test in own)


def plant(styles, wanted, room):
    """{(style, mistake's id, or "" for the right program): folder}, and sentences on edits that do not apply."""
    folders, problems = {}, []
    for style in styles.values():
        base = folders[style.name, ""] = style.write_program(room / style.name)
        for mistake in style.mistakes.values():
            if wanted(mistake):
                try:
                    materialise(base, (mistake,), room / f"{style.name}+{mistake.id}")
                    folders[style.name, mistake.id] = room / f"{style.name}+{mistake.id}"
                except PatchError as error:
                    problems.append(f"{style.name}: {error}")
    return folders, problems


def ask_all(styles, folders, metadata, jobs):
    """(style, id) -> (verdict, ids named), and sentences on what is not as promised."""
    found, problems = {}, []

    def asked(key):
        return tests_of(metadata[key[1]]["part"]) if key[1] else ("tests", "--ignore=tests/test_memory.py")

    for key, tests in counted("programs", reports(folders, asked, jobs), len(folders)):
        if isinstance(tests, RunError):
            problems.append(str(tests))
            continue
        failed = [test["name"] for test in tests if test["outcome"] == "failed"]
        style, name = key
        if not name:
            problems += [f"{style}: the right program is rejected by {test}" for test in failed]
        elif metadata[name]["test"] not in failed:
            red = ", ".join(failed) or "none"
            problems.append(f"{style}: {metadata[name]['test']} lets {name} through; red: {red}")
        else:
            found[key] = verdict(styles[style].mistakes[name], tests, metadata)
    return found, problems


def summary(styles, found):
    """One line for the seen and one for the held-out styles."""
    for held_out in (False, True):
        these = {key: kind for key, (kind, _) in found.items() if styles[key[0]].held_out == held_out}
        kinds, used = list(these.values()), sorted({style for style, _ in these})
        if kinds:
            shares = ", ".join(f"{kind} {kinds.count(kind) / len(kinds):.1%}" for kind in VERDICTS)
            title = "held out" if held_out else "seen"
            yield f"naming, {title} ({', '.join(used)}): {shares}, of {len(kinds)}"



def add_arguments(parser):
    parser.add_argument("--style", action="append", help="only this style; may be given several times")
    parser.add_argument("--part", action="append", choices=parts.PARTS, help="only mistakes of this part")
    parser.add_argument("--mistake", action="append", help="only this mistake")
    parser.add_argument("--list", action="store_true", help="a line for every mistake that is not named right")
    parser.add_argument("--jobs", type=int, default=2, help="runs side by side")


def run(args):
    """Plant, run, name, print; the exit code is 1 where something is not as promised."""
    metadata, styles = load_metadata(), load_styles()
    if unknown := sorted(set(args.style or ()) - set(styles)):
        print(f"There is no style {', '.join(unknown)}: choose from {', '.join(styles)}.", file=sys.stderr)
        return 2
    if unknown := sorted(set(args.mistake or ()) - set(metadata)):
        print(f"There is no mistake {', '.join(unknown)} in the bank.", file=sys.stderr)
        return 2
    styles = {name: style for name, style in styles.items() if not args.style or name in args.style}

    def wanted(mistake):
        return (not args.part or mistake.part in args.part) and (not args.mistake or mistake.id in args.mistake)

    with tempfile.TemporaryDirectory() as room:
        folders, problems = plant(styles, wanted, Path(room))
        found, more = ask_all(styles, folders, metadata, args.jobs)
    problems += more
    if args.list:
        for (style, name), (kind, named) in sorted(found.items()):
            if kind != "right":
                print(f"{kind}: {style}, {name}, named {', '.join(named) or 'nothing'}")
    for problem in problems:
        print(f"PROBLEM  {problem}")
    print(*summary(styles, found), sep="\n")
    print(f"problems: {len(problems)}")
    return 1 if problems else 0
