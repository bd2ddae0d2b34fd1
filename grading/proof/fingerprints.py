"""What the known mistakes answer, stored: those of the reference's hand, and of the styles that are not held out.

    python -m grading fingerprints

A name is given from any hand that a mistake was seen in, so that it does not hang on the reference's spelling. What
two hands answer alike is stored once.
"""

import json
import tempfile
from pathlib import Path

from grading.paths import REFERENCE
from grading.proof.bank import load_metadata, load_mistakes, materialise
from grading.proof.planted import load_styles, plant, tests_of
from grading.proof.runs import RunError, reports
from machinery import naming

HELP = "store what the known mistakes answer, so that a run can name them"


def add_arguments(parser):
    parser.add_argument("--jobs", type=int, default=2, help="runs side by side")


def run(args):
    """Ask all, store, print."""
    metadata = load_metadata()
    with tempfile.TemporaryDirectory() as room:
        folders = {("", name): _program(Path(room), mistake) for name, mistake in load_mistakes().items()}
        red = _red(folders, metadata, args.jobs)
    count = write({name: tests for (_, name), tests in red.items()}, args.jobs)
    print(f"{naming.FINGERPRINTS.name}: {count} fingerprints of {len(red)} mistakes.")
    return 0


def write(of_the_reference, jobs):
    """Store {mistake: {test: its entry}}, and what the styles answer besides; how many fingerprints there are.

    The file's metadata hold which tests a mistake turns red in each hand: naming.py's Fingerprints.
    """
    from safetensors.torch import save_file

    hands = {("", name): red for name, red in of_the_reference.items()} | _red_in_styles(jobs)
    tensors, kept = {}, {}
    for (hand, mistake), red in sorted(hands.items()):
        for test, entry in sorted(red.items()):
            seen = naming.tensor_of(entry["fingerprint"])
            known = kept.setdefault((mistake, test), [])
            if not any(naming.matches(seen, other) for other in known):
                known.append(seen)
                tensors["/".join((mistake, test, hand) if hand else (mistake, test))] = seen
    sets = {}
    for (_, mistake), red in hands.items():
        if sorted(red) not in sets.setdefault(mistake, []):
            sets[mistake].append(sorted(red))
    save_file(
        tensors, naming.FINGERPRINTS, {"red": json.dumps({mistake: sorted(sets[mistake]) for mistake in sorted(sets)})}
    )
    naming.read_fingerprints.cache_clear()
    return len(tensors)


def _program(room, mistake):
    materialise(REFERENCE, (mistake,), room / mistake.id)
    return room / mistake.id


def _red_in_styles(jobs):
    """(style, mistake) -> {test: its entry} of the red tests, in the styles that may be tuned on."""
    seen = {name: style for name, style in load_styles().items() if not style.held_out}
    with tempfile.TemporaryDirectory() as room:
        folders, problems = plant(seen, lambda mistake: True, Path(room))
        if problems:
            raise RunError(problems[0])
        return _red({key: folder for key, folder in folders.items() if key[1]}, load_metadata(), jobs)


def _red(folders, metadata, jobs):
    """Key -> {test: its entry} of the red tests of the mistake's part."""
    found = {}
    for key, tests in reports(folders, lambda key: tests_of(metadata[key[1]]["part"]), jobs):
        if isinstance(tests, RunError):
            raise tests
        found[key] = {test["name"]: test for test in tests if test["outcome"] == "failed"}
    return found
