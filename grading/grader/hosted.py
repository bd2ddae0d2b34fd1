"""`python -m grading.grader.hosted`: one submission in the container of Gradescope, called by the run_autograder there.

Student code gets every wall that the container allows: bubblewrap's where it may make namespaces; where it may not, a
user of its own without rights, limits, and no sockets. What is printed here only instructors are shown, and it says
which walls stand. Where the grader itself fails there is no results.json: Gradescope then says that the autograder has
failed, and nobody gets a zero for it.
"""

import contextlib
import json
import sys
import tempfile
import traceback
from pathlib import Path

from grading.grader import doctor
from grading.grader.bubblewrap import no_walls
from grading.grader.fork_server import ForkServer
from grading.grader.limits import Limits
from grading.grader.lost_worker import WorkerLost
from grading.grader.results import gradescope, write
from grading.grader.secret import SecretError, private_seed, read_secret
from grading.grader.states import GRADER_ERROR, GraderError
from grading.grader.student_files import take_in

AUTOGRADER = Path("/autograder")  # as Gradescope's documentation lays it out
SOURCE, SUBMISSION, RESULTS = (AUTOGRADER / name for name in ("source", "submission", "results"))
# Gradescope ends everything after 10 minutes, with no points: whatever a submission does, we are done before.
LIMITS = Limits(call=5.0, part=10.0, submission=20.0, reserve=2.0)


def main():
    """Grade what was submitted; 1 where that can't be done."""
    sandboxed = not no_walls()
    for folder in (SOURCE, RESULTS):
        with contextlib.suppress(OSError):  # who is not root has no other user to hide them from; the walls say so
            folder.chmod(0o700)
    try:
        print(*doctor.lines(sandboxed, LIMITS), sep="\n", flush=True)
        result = grade(take_in(SUBMISSION), read_secret(str(SOURCE / "secret.txt")), sandboxed)
    except (GraderError, SecretError, WorkerLost) as error:
        print(f"Nothing is graded: {error}", file=sys.stderr)
        return 1
    except Exception as error:  # a fault of ours, whatever it is: never a student's zero
        traceback.print_exc()
        print(f"Nothing is graded: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    if result["state"] == GRADER_ERROR:
        print(f"Nothing is graded: {result['error']}", file=sys.stderr)
        return 1
    shown = {**gradescope(result), "stdout_visibility": "hidden"}
    write(RESULTS / "results.json", json.dumps(shown, indent=1))
    return 0


def grade(intake, secret, sandboxed):
    """The result of one submission; GraderError where the reference itself does not pass here."""
    with tempfile.TemporaryDirectory() as work, ForkServer(sandboxed, 1) as fork_server:
        from grading.grader.batch import Batch, prepare  # brings torch, which the fork server imports meanwhile

        batch = Batch(prepare(private_seed(secret), work), secret, sandboxed, LIMITS)
        ((_, result),) = batch.results([intake], fork_server)
    return result


if __name__ == "__main__":
    sys.exit(main())
