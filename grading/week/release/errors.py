"""What can go wrong with a release."""


class ReleaseError(Exception):
    """There is no release; the message is one sentence: why, and what to do."""


class LeakError(ReleaseError):
    """Files would show solutions; `leaks` names every place."""

    def __init__(self, leaks):
        places = "1 place shows" if len(leaks) == 1 else f"{len(leaks)} places show"
        super().__init__(f"{places} what students must not get: take it out there.")
        self.leaks = leaks
