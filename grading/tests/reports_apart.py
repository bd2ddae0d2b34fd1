"""The week's tests on implementations, from a process without this pytest: its plugins and settings are not theirs."""

import json

import warm

CODE = """
import json, sys
from grading.proof.runs import reports
arguments = json.loads(sys.argv[2])
print("RESULT" + json.dumps(dict(reports(json.loads(sys.argv[1]), lambda name: arguments))))
"""


def reports(folders, *arguments):
    """{name: its report} for each of {name: folder}, of the tests that pytest's arguments name."""
    named = json.dumps({name: str(folder) for name, folder in folders.items()})
    run = warm.python("-c", CODE, named, json.dumps(arguments or ["tests"]))
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout.split("RESULT")[-1])
