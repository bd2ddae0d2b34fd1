"""The seconds of one submission: what is left of them, over all runs of the tests together."""

import time


class Allowance:
    """What a submission may use: of a call, of a part, of all together; and of each part, a little that stays its own.

    So no part and no run can leave nothing for another, and all together has an end.
    """

    def __init__(self, limits, parts):
        self._limits = limits
        self._used = {}  # (run, part) -> seconds
        self._end = time.monotonic() + limits.longest(parts)

    def left(self, run, part):
        """Seconds that the next call may take; 0 or less where there are none."""
        limits, used = self._limits, self._used.get((run, part), 0.0)
        of_all = limits.submission - sum(self._used.values())
        by_the_clock = self._end - time.monotonic()
        return min(limits.call, limits.part - used, max(of_all, limits.reserve - used), by_the_clock)

    def use(self, run, part, seconds):
        """A call of this part has taken so many."""
        self._used[run, part] = self._used.get((run, part), 0.0) + seconds
