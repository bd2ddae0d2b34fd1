"""Grades the attacks of the table and says of each whether it ended as it must."""

import sqlite3

from grading.grader.batch import Batch, prepare
from grading.grader.fork_server import ForkServer
from grading.grader.limits import Limits
from grading.grader.student_files import take_in
from grading.paths import REFERENCE, ROOT
from grading.proof.attacks.attack import ARGUMENTS, ATTACKED, BYSTANDERS
from grading.proof.attacks.table import ATTACKS

SECRET = b"the secret of these tests"
LIMITS = Limits(call=2.0, part=4.0, submission=12.0, reserve=2.0, patience=3.0)
MODES = ("sandboxed", "unsandboxed")


def played(mode):
    """The attacks of one mode."""
    return [name for name, attack in ATTACKS.items() if mode == "sandboxed" or not attack.sandbox_only]


def gradebook(place):
    """A gradebook in this folder, which an attack may look for."""
    with sqlite3.connect(place / "gradebook.db") as base:
        base.execute("create table grade (points)")
        base.execute("insert into grade values (1)")
    return place / "gradebook.db"


def play(names, mode, place, jobs=2):
    """Yield (attack's name, result) as they are graded, in folders below `place`."""
    submissions = place / mode
    rope = (REFERENCE / "rope.py").read_text(encoding="utf-8")
    words = {"course": ROOT, "victim": place / "gradebook.db", "submissions": submissions}
    for name in names:
        (submissions / name).mkdir(parents=True)
        for file, text in ATTACKS[name].files(rope).items():
            for word, value in words.items():
                text = text.replace("{" + word + "}", str(value))
            (submissions / name / file).write_text(text, encoding="utf-8")
    batch = Batch(prepare(4711, place, ARGUMENTS), SECRET, mode == "sandboxed", LIMITS)
    intakes = [take_in(path) for path in sorted(submissions.iterdir())]
    with ForkServer(batch.sandboxed, jobs) as fork_server:
        for intake, result in batch.results(intakes, fork_server):
            yield intake.name, result


def faults(attack, result):
    """What is not as it must be in the result of an attack: sentences, or none."""
    if result["state"] != "graded":
        return [f"a grader error: {result['error']}"]
    tests = {test["name"]: test for test in result["tests"]}
    attacked, beside = [tests[name] for name in ATTACKED], [tests[name] for name in BYSTANDERS]
    found = []
    for test in attacked:
        if test["state"] not in attack.states:
            found.append(f"{test['name']} is {test['state']}: {test['message']}")
        elif test["state"] != "passed" and attack.says not in test["message"]:
            found.append(f"{test['name']} says: {test['message']}")
    points = sum(test["earned"] for test in attacked)
    if points != attack.points:
        found.append(f"it earns {points} points, not {attack.points}")
    found += [f"a bystander, {test['name']}, is {test['state']}" for test in beside if test["state"] != "passed"]
    silent = [test["name"] for test in tests.values() if test["state"] != "passed" and not test["message"]]
    return found + [f"{name} has no message" for name in silent]
