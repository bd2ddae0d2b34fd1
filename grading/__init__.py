"""The instructor's side: what makes, checks and grades the week. No student copy holds it.

    week/       the instructor's week in nbgrader        grader/    the two zones that grade a submission
    authoring/  the one source, and what it generates    proof/     how tests and claims are proved
    demo/       the week tried out                       tests/     the course team's questions, room by room
"""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))  # where the package `machinery` lies
# Before torch is imported: a thread that waits for another leaves its core to who else works, instead of asking again
# and again. Where more run than there are cores, two threads are 20 times slower without it.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
