"""The late policy, as nbgrader's plugin: some minutes of grace, then a part of the score for each day begun.

In nbgrader_config.py:

    c.AssignLatePenalties.plugin_class = "grading.week.late_policy.LatePolicy"
    c.LatePolicy.grace_minutes = 15      # within them nothing is taken
    c.LatePolicy.percent_a_day = 10.0    # of the score, for each day begun after the grace
    c.LatePolicy.cap_percent = 50.0      # and never more than this

A day ends at the same time of the course's clock (`c.NbGraderAPI.timezone`), so the day on which the
clock is changed has 23 or 25 hours. The penalty always comes from the score of now, never from an earlier
penalty. nbgrader works it out at `autograde`; `renew` does so again after marks were given by hand.
"""

from datetime import UTC, timedelta

from nbgrader.plugins import LateSubmissionPlugin
from nbgrader.preprocessors import AssignLatePenalties
from traitlets import Float, Integer, TraitError, validate

from grading.week.times import course_zone


class LatePolicy(LateSubmissionPlugin):
    """Grace, percent a day, cap."""

    grace_minutes = Integer(0, help="Minutes after the deadline in which nothing is taken.").tag(config=True)
    percent_a_day = Float(10.0, help="Percent of the score for each day begun after the grace.").tag(config=True)
    cap_percent = Float(100.0, help="The most that is taken, in percent of the score.").tag(config=True)

    @validate("grace_minutes")
    def _not_negative(self, proposal):
        if proposal["value"] < 0:
            raise TraitError(f"LatePolicy.grace_minutes is {proposal['value']}: write 0 or more.")
        return proposal["value"]

    @validate("percent_a_day", "cap_percent")
    def _percent(self, proposal):
        if not 0 <= proposal["value"] <= 100:
            name = proposal["trait"].name
            raise TraitError(f"LatePolicy.{name} is {proposal['value']:g}: write a number from 0 to 100.")
        return proposal["value"]

    def late_submission_penalty(self, student_id, score, total_seconds_late):
        """What is taken from `score`; nbgrader asks only where the submission is late."""
        submission = self.parent.gradebook.find_submission(self.parent.assignment_id, student_id)
        due, handed_in = submission.duedate.replace(tzinfo=UTC), submission.timestamp.replace(tzinfo=UTC)
        days = days_late(due, handed_in, timedelta(minutes=self.grace_minutes), course_zone(self.config))
        return score * self.percent(days) / 100

    def percent(self, days):
        """What is taken after so many days, in percent."""
        return min(days * self.percent_a_day, self.cap_percent)


def days_late(due, handed_in, grace, zone):
    """How many days of the zone's clock have begun between the end of the grace and the hand-in; 0 within it."""
    end = (due + grace).astimezone(zone)
    days = max(0, (handed_in - end).days - 1)  # a day of the clock may have 25 hours
    # Adding days to a local time keeps the clock's time; the comparison is made in UTC.
    while (end + timedelta(days=days)).astimezone(UTC) < handed_in:
        days += 1
    return days


def renew(gradebook, config, assignment):
    """Work out the penalties of an assignment again, from the scores of now; the number that have changed.

    Where the course has no policy nothing is touched.
    """
    asked = AssignLatePenalties(config=config)
    if asked.plugin_class is LateSubmissionPlugin:
        return 0
    asked.gradebook, asked.assignment_id = gradebook, assignment
    asked.init_plugin()
    changed = 0
    for submission in gradebook.assignment_submissions(assignment):
        late = submission.total_seconds_late
        for notebook in submission.notebooks:
            penalty = None
            if late > 0:
                penalty = asked.plugin_inst.late_submission_penalty(submission.student.id, notebook.score, late)
                penalty = penalty and min(max(penalty, 0), notebook.score)
            changed += notebook.late_submission_penalty != penalty
            notebook.late_submission_penalty = penalty
    gradebook.db.commit()
    return changed
