"""The self-check in the week's notebook: one part's public tests, on the student's files, in the student's kernel.

The grade does not come from here: the same tests ask the same code with other inputs then.
"""

import os

from nanolm.student.run_tests import NotRun, parts, run_tests


class NotYet(Exception):
    """A self-check that did not pass, as nbgrader's validation shows it: the message is the whole story."""

    def _render_traceback_(self):  # what Jupyter shows in place of a traceback
        return str(self).split("\n")


def self_check(part):
    """Run one part's public tests and print a line for each.

    The points that a core part earned are returned, for nbgrader; a depth part is bonus and returns nothing.
    Where nbgrader validates the notebook, a core part that is not all right raises NotYet.
    """
    try:
        run = run_tests("-p", "no:cacheprovider", "-k", f"test_{part}_")
    except NotRun as reason:
        raise NotYet(f"The self-check of {part} did not run: {reason}") from None
    from machinery import telling

    earned = sum(test["points"] for test in run.tests if test["outcome"] == "passed")
    possible = sum(test["points"] for test in run.tests)
    core = part in parts().CORE
    lines = [
        f"Self-check of {part}: {earned} of {possible} points{'' if core else ' of bonus'}, by the public tests.",
        "The grade asks the same with other numbers: code that computes gets the same points.",
        *telling.one_by_one(run.tests, run.naming),
    ]
    red = [test for test in run.tests if test["outcome"] != "passed"]
    if core and red and "NBGRADER_VALIDATING" in os.environ:
        raise NotYet("\n".join((lines[0], *telling.one_by_one(red, run.naming))))
    print(*lines, sep="\n")
    return float(earned) if core else None
