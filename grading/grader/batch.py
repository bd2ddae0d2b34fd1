"""Many submissions side by side: slots that grade, and this process, which alone writes.

A slot is a process with a zygote of its own. It forks a fresh process for each submission, so that
no run of the tests sees another's. All of them end when this process ends, however it ends.
"""

import contextlib
import multiprocessing
import os
import tempfile
from multiprocessing.connection import wait
from pathlib import Path

import torch

from grading.authoring import golden
from grading.grader.exam import Exam, failed_result, grade, sit
from grading.grader.inside import confine
from grading.grader.limits import Limits
from grading.grader.results import key_of, setting
from grading.grader.sandbox import Zygote
from grading.grader.states import GRADER_ERROR, PASSED, GraderError
from grading.grader.student_files import Intake, take_in
from grading.paths import REFERENCE, ROOT

FORK = multiprocessing.get_context("fork")
SLACK = 180  # seconds that a submission may take besides its student code
TRIES = 2
GROWTH = 1 << 30  # bytes that the tests may take for what an answer makes of them: beyond it is the answer's fault


class Batch:
    """One run: what is asked (`exam`), where (`sandboxed`, `limits`), and under which secret."""

    def __init__(self, exam, secret, sandboxed, limits=None, depends_on=None):
        """`depends_on` is the results' setting, where the caller has worked it out."""
        self.exam, self.sandboxed, self.limits = exam, sandboxed, limits or Limits()
        self.depends_on = depends_on or setting(exam.arguments, secret, sandboxed, self.limits)

    def key(self, intake):
        """Under which key this submission's result is kept."""
        return key_of(intake, self.depends_on)

    def results(self, intakes, fork_server):
        """Yield (intake, result) as submissions are done, side by side as many as the fork server has zygotes.

        GraderError where the reference itself does not pass.
        """
        torch.set_num_threads(1)  # nothing parallel may run before the forks
        proof = Intake("reference", take_in(REFERENCE).texts)
        waiting, slots = [*reversed(intakes), proof], []
        held = []  # what is graded before the reference has passed
        try:
            for number in range(len(fork_server.controls)):
                slots.append(_Slot(self, number, slots, fork_server))
            fork_server.keep()  # none here: a slot that ends is to end its zygote
            busy = {slot.channel: slot for slot in slots}
            for slot in slots:
                slot.give(waiting.pop())
            while busy:
                for channel in wait(list(busy)):
                    slot = busy[channel]
                    intake, result = slot.take()
                    if intake is proof:
                        _check(result)
                        proof = None
                    else:
                        held.append((intake, {**result, "key": self.key(intake), "sandboxed": self.sandboxed}))
                    if waiting:
                        slot.give(waiting.pop())
                    else:
                        del busy[channel]
                    if proof is None:
                        yield from held
                        held.clear()
        finally:
            for slot in slots:
                slot.channel.close()  # which ends it where it waits
            for slot in slots:
                slot.end()


class _Slot:
    """A process that grades one submission at a time, as the writer sees it."""

    def __init__(self, batch, number, others, fork_server):
        self.channel, theirs = FORK.Pipe()
        self.intake = None
        inherited = [self.channel, *(slot.channel for slot in others)]
        self._process = FORK.Process(target=_serve, args=(theirs, inherited, batch, number, fork_server))
        self._process.start()
        theirs.close()

    def give(self, intake):
        self.intake = intake
        self.channel.send(intake)

    def take(self):
        try:
            return self.intake, self.channel.recv()
        except (EOFError, OSError):
            raise GraderError(f"the process that graded {self.intake.name} has died") from None

    def end(self):
        self._process.join(10)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


def _check(result):
    """The reference must pass every test before anybody's result counts; GraderError says which it does not."""
    if result["state"] == GRADER_ERROR:
        raise GraderError(result["error"])
    red = [test["name"] for test in result["tests"] if test["state"] != PASSED]
    if red:
        raise GraderError(f"the reference itself does not pass {', '.join(red)}")


def _serve(channel, inherited, batch, number, fork_server):
    """The slot's process: grade what comes, until the writer closes the channel."""
    confine.die_with_parent()
    for end in inherited:  # the writer's: one that stays open here would hide that the writer has closed its own
        end.close()
    fork_server.keep(number)
    _stay_on_one_core(number)
    os.chdir(ROOT)
    try:
        zygote = Zygote(batch.sandboxed, batch.limits, number, fork_server)
        sit(batch.exam.arguments, lambda tests: _grade_all(channel, batch, number, tests, zygote))
    except GraderError as error:
        for intake in _coming(channel):
            channel.send(failed_result(intake, str(error)))


def _stay_on_one_core(number):
    """A slot and its workers wait for each other: on one core the next finds its memory in the cache."""
    if not hasattr(os, "sched_setaffinity"):
        return
    cores = sorted(os.sched_getaffinity(0))
    with contextlib.suppress(OSError):  # where it may not choose, it is slower
        os.sched_setaffinity(0, {cores[(os.getppid() + number) % len(cores)]})  # another run begins elsewhere


def _coming(channel):
    """The submissions that the writer gives, until it closes the channel."""
    while True:
        try:
            yield channel.recv()
        except (EOFError, OSError):
            return


def _grade_all(channel, batch, number, tests, zygote):
    for intake in _coming(channel):
        result = None
        for _ in range(TRIES):
            try:
                if zygote is None or not zygote.alive:
                    zygote = Zygote(batch.sandboxed, batch.limits, number)
                zygote.get_ready()
                result = grade_in_a_fork(intake, zygote, batch, tests)
                break
            except GraderError as error:
                result = failed_result(intake, str(error))
                if zygote is not None:
                    zygote.close()
                    zygote = None
        channel.send(result)
    if zygote is not None:
        zygote.close()


def grade_in_a_fork(intake, zygote, batch, tests):
    """The result of one submission, from a fresh process; GraderError where it gives none."""
    receiver, sender = FORK.Pipe(duplex=False)
    child = FORK.Process(target=_send_result, args=(sender, intake, zygote, batch, tests))
    child.start()
    sender.close()
    try:
        if not receiver.poll(batch.limits.longest(tests.parts) + SLACK):
            raise GraderError("grading took too long")
        result = receiver.recv()
    except EOFError:
        raise GraderError("the process that held the tests has died") from None
    finally:
        child.kill()
        child.join()
        receiver.close()
    if isinstance(result, str):
        raise GraderError(result)
    return result


def _send_result(sender, intake, zygote, batch, tests):
    confine.die_with_parent()
    confine.limit_growth(GROWTH)
    try:
        sender.send(grade(intake, zygote, batch.exam, tests))
    except GraderError as error:
        sender.send(str(error))
    except Exception as error:  # a fault of ours, whatever it is: never a student's zero
        sender.send(f"{type(error).__name__}: {error}")


def prepare(seed, folder, arguments=("tests",)):
    """An Exam under this seed; its stored answers are written into a private folder below `folder`."""
    torch.set_num_threads(1)

    answers = Path(tempfile.mkdtemp(dir=folder))
    golden.write(answers, seed)
    return Exam(seed, answers, arguments)
