"""How much student code may use."""

from dataclasses import dataclass, field

GiB, MiB = 1 << 30, 1 << 20
RUNS = 2  # of the tests: the private one gives the points, the public one the sentences


@dataclass(frozen=True)
class Limits:
    """Seconds and bytes that student code may use. A test of the grader takes smaller ones.

    The seconds are those at work and asleep, not those in wait of a turn, so that a busy machine takes
    nobody's points; by the clock everything may take `patience` times as long.
    """

    call: float = 10.0  # seconds of one call
    part: float = 30.0  # of all calls of one part of the week
    submission: float = 120.0  # of all calls of a submission, in all runs of the tests
    reserve: float = 4.0  # of a part in a run, whatever the others have used
    patience: float = 4.0
    room: int = 64 * MiB  # files in the worker's own folder
    memory: int = 6 * GiB  # of the zygote and its workers together, where there are control groups
    process: dict = field(
        default_factory=lambda: {
            "AS": 7 * GiB // 2,  # besides what Python and torch take
            "CPU": 60, "FSIZE": 16 * MiB, "NOFILE": 64, "NPROC": 64, "CORE": 0, "MEMLOCK": 0, "MSGQUEUE": 0,
        }
    )  # fmt: skip
    answers: int = 256 * MiB  # of all answers to one test, as the tests hold them: eight bytes an entry

    def most(self, parts):
        """Seconds of the processor that one submission can use, with this many parts of the week."""
        return self.submission + RUNS * parts * self.reserve + self.call

    def longest(self, parts):
        """Seconds by the clock after which no call of it begins, however busy the machine is."""
        return self.patience * self.most(parts)
