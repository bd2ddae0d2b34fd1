"""nbgrader's configuration of the course. What is not set here is as nbgrader's documentation says."""

import sys
from pathlib import Path

COURSE = Path(__file__).resolve().parent
REPOSITORY = COURSE.parent.parent.parent  # `python -m grading course FOLDER` writes another path here

c = get_config()  # noqa: F821  nbgrader gives it

sys.path.insert(0, str(REPOSITORY))
try:
    from grading.week.autograde.wiring import configure
except ImportError as error:  # nbgrader would go on without these settings, and run student code unprotected
    raise SystemExit(
        f"{COURSE / 'nbgrader_config.py'} names the repository {REPOSITORY}, which can't be used ({error}): "
        f"run there  python -m grading course {COURSE}"
    ) from None

# Where nbgrader hands out and takes in. Students on this machine need a folder that they can reach, and this one is
# closed to them, as it must be: `python -m grading course COURSE --exchange FOLDER` names another.
c.Exchange.root = str(COURSE / "exchange")

configure(c, COURSE)

# The text that the private inputs of the grade come from; the variable NANOLM_SECRET, where it is set, comes first.
c.WeekAutograde.secret_file = str(COURSE / "secret.txt")
# Submissions graded side by side.
c.WeekAutograde.jobs = 2
# False grades without bubblewrap: student code then runs with your rights. Every result says so.
c.WeekAutograde.sandboxed = True

# The zone that times are shown in, and what lateness costs (grading/week/late_policy.py); formgrader sets a deadline.
c.NbGraderAPI.timezone = "UTC"
c.LatePolicy.grace_minutes = 15
c.LatePolicy.percent_a_day = 10.0
c.LatePolicy.cap_percent = 50.0

# The depth parts are a bonus on top. How many points of it count in exports and report; without this line all of them.
# c.BonusPolicy.most = 20.0
