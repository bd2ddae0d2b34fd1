"""`python -m grading attack`: play the table of attacks against the grader on this machine, and say how each ended."""

import sys
import tempfile
from pathlib import Path

from grading.grader.states import GraderError

HELP = "grade every attack of the table on this machine, and say whether each ended as it must"


def add_arguments(parser):
    parser.add_argument("names", nargs="*", metavar="ATTACK", help="only these; all of the table where none is named")
    parser.add_argument("--unsandboxed", action="store_true", help="without bubblewrap; not those that only it stops")


def run(args):
    """Print a line for each attack; 1 where one did not end as it must."""
    # brings torch, which --help should not wait for
    from grading.proof.attacks.attack import ATTACKED
    from grading.proof.attacks.play import faults, gradebook, play, played
    from grading.proof.attacks.table import ATTACKS

    mode = "unsandboxed" if args.unsandboxed else "sandboxed"
    unknown = [name for name in args.names if name not in ATTACKS]
    if unknown:
        print(f"There is no attack {unknown[0]!r}: leave the names out, and all are played.", file=sys.stderr)
        return 1
    names = [name for name in args.names or played(mode) if name in played(mode)]
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        gradebook(Path(folder))
        try:
            for name, result in play(names, mode, Path(folder)):
                wrong = faults(ATTACKS[name], result)
                failed += bool(wrong)
                states = sorted({test["state"] for test in result["tests"] if test["name"] in ATTACKED})
                print(f"{'NO' if wrong else 'ok':<4}{name:<34}{', '.join(states)}", flush=True)
                for sentence in wrong:
                    print(f"      {sentence}")
        except GraderError as error:
            print(f"The attacks can't be graded: {error}", file=sys.stderr)
            return 1
    print(f"{len(names)} attacks, {mode}: {len(names) - failed} ended as they must, {failed} did not")
    return 1 if failed else 0
