"""`python -m grading collect`: take in what a learning platform gave, and say what is wrong with it."""

import sys
from collections import Counter
from pathlib import Path

from grading.week.collect import ASSIGNMENT

HELP = "collect submissions from Canvas, Moodle, folders, zips or nbgrader's exchange; one table of problems"


def add_arguments(parser):
    parser.add_argument("source", type=Path, metavar="SOURCE", help="the folder or .zip file that the platform gave")
    parser.add_argument("--course", type=Path, required=True, metavar="COURSE", help="the nbgrader course's folder")
    parser.add_argument(
        "--times", type=Path, metavar="CSV", help="times of hand-in, columns student and time, where SOURCE has none"
    )


def run(args):
    """Collect; 1 where something of somebody could not be collected."""
    from grading.week.collect.intake import SourceError
    from grading.week.course_folder import Course, CourseError
    from grading.week.databases import DatabaseError
    from grading.week.times import TimeError

    try:
        return collect(args.source, Course(args.course), args.times)
    except (CourseError, DatabaseError, SourceError, TimeError) as error:
        print(f"Nothing is collected: {error}", file=sys.stderr)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"Stopped: {where}{error.strerror or error}. The same command goes on from here.", file=sys.stderr)
    return 1


def collect(source, course, times=None):
    """Collect a source into a course, print the table and write it beside; the exit code."""
    from grading.grader.results import write
    from grading.week.collect.intake import Collection, SourceError, read_times, without_time
    from grading.week.collect.owners import asks_owners
    from grading.week.collect.problems import as_csv, table, unsettled
    from grading.week.collect.roster import roster_of
    from grading.week.collect.store import KEPT, UNCHANGED, UPDATED, Store
    from grading.week.times import course_zone

    store = Store(course)
    if store.root.resolve() in (source.resolve(), *source.resolve().parents):
        raise SourceError(f"{source} is where collected work goes: name what the platform gave you.")
    roster, zone = roster_of(course.directory), course_zone(course.config)
    collection = Collection(roster, zone, *(read_times(times, roster, zone) if times else ()))
    collection.ask_owners = asks_owners(course.config)
    with store.alone():
        done = {}
        for attempt in collection.attempts(source):
            done[attempt.student] = state = store.put(attempt)
            _notes(collection, attempt, state)
        file, named = course.folder / f"intake-{ASSIGNMENT}.csv", str(source.resolve())
        before = unsettled(file, named, store.students().__contains__)
        waiting = {row[0] for row in before}
        enrolled = {student.id for student in roster.students}
        collection.nothing_from(enrolled - store.students() - _named(collection) - waiting)
        problems = sorted({*collection.problems, *without_time(one for one in done if not _has_time(one, course))})
        write(file, as_csv(problems, named, before))
    print(collection.understood)
    if before:
        print(f"{len(before)} rows of earlier intakes are not settled: they stay in the table until you delete them.")
    if problems:
        print(*table(problems), sep="\n", end="\n\n")
    counts = Counter(done.values())
    states = ", ".join(f"{counts[state]} {state}" for state in ("new", UPDATED, UNCHANGED, KEPT) if counts[state])
    lost = {problem.who for problem in problems if problem.lost}
    print(f"{len(done)} collected{f' ({states})' if states else ''}, {len(lost)} with something not collected.")
    if problems:
        print(f"The table: {file}")
    return 1 if lost else 0


def _notes(collection, attempt, state):
    """Rows about an attempt that came before or after another."""
    from grading.week.collect.problems import Problem
    from grading.week.collect.store import KEPT, UPDATED

    if state == KEPT:
        what = f"{attempt.source} is older than what was collected before"
        collection.problems.append(Problem(attempt.student, what, "nothing: the later one stays"))
    if state == UPDATED:
        again = f"nbgrader autograde {ASSIGNMENT} --force --student={attempt.student}"
        collection.problems.append(Problem(attempt.student, "other files than were collected before", again))


def _has_time(student, course):
    """Whether what lies in submitted/ has a time that can be read."""
    from grading.week.times import TimeError, time_in

    try:
        return time_in(course.submitted(student, ASSIGNMENT)) is not None
    except TimeError:
        return False


def _named(collection):
    return {problem.who for problem in collection.problems}
