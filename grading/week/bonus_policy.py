"""How much of the bonus counts in what leaves the house, exports and the class report: all of it, unless it is said.

In nbgrader_config.py:

    c.BonusPolicy.most = 20.0      # points of bonus that count at most; 0 counts none

The gradebook and the feedback keep every point that was earned. A late penalty is of what counts.
"""

from traitlets import Float, TraitError, validate
from traitlets.config import Configurable


class BonusPolicy(Configurable):
    """The most points of bonus that count."""

    most = Float(None, allow_none=True, help="Points of bonus that count at most; None counts all.").tag(config=True)

    @validate("most")
    def _not_negative(self, proposal):
        if proposal["value"] is not None and not proposal["value"] >= 0:
            raise TraitError(f"BonusPolicy.most is {proposal['value']:g}: write 0 or more, or nothing for no limit.")
        return proposal["value"]

    def counts(self, bonus):
        """How much of this bonus counts."""
        return bonus if self.most is None else min(bonus, self.most)
