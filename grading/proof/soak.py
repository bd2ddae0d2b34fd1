"""Grade many submissions, with the grader killed at random moments: `python -m grading soak [--count N]`.

The same submissions are graded twice: undisturbed, and with kills. Afterwards every submission must
have exactly one result, and the same one both ways. A few named tests are asked, so that it ends today.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from grading.grader.bubblewrap import no_walls
from grading.grader.results import versions
from grading.grader.run import grade_folder
from grading.paths import REFERENCE, ROOT
from grading.proof.attacks.attack import ARGUMENTS
from grading.proof.attacks.table import ATTACKS

HELP = "grade many submissions, with the grader killed at random moments"
SECRET = b"the secret of the soak"
MADE_BY = versions()
# Right, wrong and hostile, and none that waits for a time limit.
MIXED = ("right", "nothing", "nan", "warns", "patched_torch", "equals_everything", "exits_at_import", "kills_itself")
MIXED += ("segfault", "garbage", "answers_twice", "lying_safetensors", "writes_to_every_descriptor", "empty_file")


def make(folder, count):
    """`count` submissions, each its own text."""
    rope = (REFERENCE / "rope.py").read_text(encoding="utf-8")
    for number in range(count):
        place = folder / f"student{number:04}"
        place.mkdir(parents=True)
        for name, text in ATTACKS[MIXED[number % len(MIXED)]].files(rope).items():
            (place / name).write_text(f"{text}\n# {number}\n", encoding="utf-8")


def start(submissions, out):
    """One run of the grader as a process of its own. All runs keep results under the versions of the first."""
    command = [sys.executable, "-m", "grading", "soak", "--grade", str(submissions), str(out), json.dumps(MADE_BY)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def written(out):
    """Result file -> its content; a file that is not whole is an error here."""
    found = (out / "results").glob("[!.]*.json")
    return {path.name: json.loads(path.read_text(encoding="utf-8")) for path in sorted(found)}


def disturbed(submissions, out, count, kills, rng):
    """Run until all is graded, with `kills` kills spread over the results. Returns how many there were."""
    done = 0
    for goal in sorted(rng.sample(range(1, count), kills)):
        process = start(submissions, out)
        while len(os.listdir(out / "results") if (out / "results").is_dir() else ()) < goal and process.poll() is None:
            time.sleep(0.02)
        time.sleep(rng.random() / 4)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            done += 1
        process.wait()
        written(out)
    if start(submissions, out).wait():
        raise SystemExit("the last run, which nobody disturbed, failed")
    return done


def add_arguments(parser):
    parser.add_argument("--count", type=int, default=1_000, help="submissions")
    parser.add_argument("--kills", type=int, default=20, help="times that the grader is killed")
    parser.add_argument("--grade", nargs=3, metavar=("SUBMISSIONS", "OUT", "VERSIONS"), help=argparse.SUPPRESS)


def run(args):
    """Make, grade twice, compare; the exit code is 1 where a result differs, is missing or doubled."""
    if args.grade:
        submissions, out, made_by = Path(args.grade[0]), Path(args.grade[1]), json.loads(args.grade[2])
        sandboxed = not no_walls()
        return grade_folder(submissions, out, SECRET, sandboxed, 2, ARGUMENTS, made_by=made_by)
    if not 0 <= args.kills < args.count:
        print("There must be more submissions than kills: give another --count or --kills.", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as room:
        submissions, calm, rough = (Path(room) / name for name in ("submissions", "calm", "rough"))
        make(submissions, args.count)
        begin = time.monotonic()
        if start(submissions, calm).wait():
            raise SystemExit("the undisturbed run failed")
        seconds = time.monotonic() - begin
        print(f"undisturbed: {args.count} submissions, {seconds:.0f} s, {seconds / args.count:.2f} s each", flush=True)
        kills = disturbed(submissions, rough, args.count, args.kills, random.Random(0))
        expected, found = written(calm), written(rough)
        differ = [name for name in expected if found.get(name) != expected[name]]
        same_table = (calm / "grades.csv").read_bytes() == (rough / "grades.csv").read_bytes()
        print(f"with {kills} kills: {len(found)} results, {len(differ)} differ; the tables are equal: {same_table}")
        return 0 if len(expected) == len(found) == args.count and not differ and same_table and kills else 1
