"""The same intake under nbgrader's own commands: `nbgrader zip_collect week06` and `nbgrader collect week06`.

In nbgrader_config.py:

    c.ZipCollectApp.extractor_plugin = "grading.week.collect.plugins.WeekExtractor"
    c.ZipCollectApp.collector_plugin = "grading.week.collect.plugins.WeekCollector"
    c.ExchangeFactory.collect = "grading.week.collect.plugins.WeekExchangeCollect"

    c.WeekExtractor.times = "times.csv"  # where the platform's names tell no times

zip_collect reads downloaded/week06/archive/, where what the platform gave is put.
"""

from datetime import datetime
from pathlib import Path

from nbgrader.exchange.default import ExchangeCollect
from nbgrader.plugins import ExtractorPlugin, FileNameCollectorPlugin
from traitlets import List, Unicode

from grading.grader.inside.text import clean
from grading.grader.results import write
from grading.week.collect import ASSIGNMENT
from grading.week.collect.attempt import Attempt
from grading.week.collect.intake import SETTLE, Collection, SourceError, read_times, without_time
from grading.week.collect.items import items_of
from grading.week.collect.names import EXCHANGE, label_of, platform_of_name
from grading.week.collect.owners import asks_owners, owner_trouble
from grading.week.collect.problems import Problem, as_csv, unsettled
from grading.week.collect.roster import Roster, is_folder_name, roster_of
from grading.week.collect.store import write_files
from grading.week.databases import DatabaseError
from grading.week.times import TimeError, course_zone

NOBODYS = None  # nbgrader's name for whose folder it is, where that can't be said
LOST = f"%d with something not collected, all others are collected: see intake-{ASSIGNMENT}.csv"


def report(problems, coursedir, log, source):
    """Log each row of the intake's table and write it as CSV; of how many people something could not be collected."""
    problems = sorted(set(problems))
    file = Path(coursedir.root) / f"intake-{ASSIGNMENT}.csv"

    def settled(student):
        return Path(coursedir.format_path(coursedir.submitted_directory, student, ASSIGNMENT)).is_dir()

    try:
        write(file, as_csv(problems, source, unsettled(file, source, settled)))
    except OSError as error:
        log.error("%s can't be written (%s): make room; what is collected stays", file, error.strerror)
    for problem in problems:
        say = log.error if problem.lost else log.warning
        say("%s: %s: %s", *map(clean, (problem.who, problem.what, problem.do)))
    return len({problem.who for problem in problems if problem.lost})


class WeekExtractor(ExtractorPlugin):
    """Takes in what the platform gave; writes extracted/STUDENT/, the files under their fixed names."""

    times = Unicode("", help="A CSV file in the course, columns student and time of hand-in.").tag(config=True)

    def extract(self, archive_path, extracted_path):
        """nbgrader's call: from downloaded/week06/archive/ to downloaded/week06/extracted/."""
        try:
            roster, zone = roster_of(self.parent.coursedir), course_zone(self.config)
            times = Path(self.parent.coursedir.root, self.times)
            collection = Collection(roster, zone, *(read_times(times, roster, zone) if self.times else ()))
            collection.ask_owners = asks_owners(self.config)
            found, timeless, source = set(), [], str(Path(archive_path).resolve())
            for attempt in collection.attempts(Path(archive_path)):
                folder = Path(extracted_path, attempt.student)
                folder.mkdir(parents=True)
                write_files(folder, attempt.files, attempt.time)
                found.add(attempt.student)
                timeless += [attempt.student] if attempt.time is None else []
            self.log.info(collection.understood)
            named = {problem.who for problem in collection.problems}
            collection.nothing_from({student.id for student in roster.students} - found - named)
            problems = [*collection.problems, *without_time(timeless)]
            self._end_with(report(problems, self.parent.coursedir, self.log, source))
        except (SourceError, DatabaseError, TimeError) as error:
            self.parent.fail(f"Nothing is collected: {error}")
        except OSError as error:
            self.parent.fail(f"Stopped: {error.filename}: {error.strerror}. The same command goes on from here.")

    def _end_with(self, lost):
        """nbgrader goes on to collect what was extracted; after that its exit code must tell of the rest."""
        go_on = self.parent.process_extracted_files

        def then_fail():
            go_on()
            self.parent.fail(LOST, lost)

        if lost:
            self.parent.process_extracted_files = then_fail


class WeekCollector(FileNameCollectorPlugin):
    """Reads what WeekExtractor wrote: the folder is the student, the rest is the file's place."""

    valid_ext = List(Unicode(), [".ipynb", ".py", ".txt"], help="What WeekExtractor writes.").tag(config=True)

    def collect(self, submitted_file):
        """nbgrader's call for each extracted file."""
        top = self.parent._format_collect_path(self.parent.extracted_directory)
        student, *rest = Path(submitted_file).relative_to(top).parts
        return {"student_id": student, "file_id": "/".join(rest)}


class WeekExchangeCollect(ExchangeCollect):
    """nbgrader's collect from its exchange, which copies links and any names; the week's files are taken instead."""

    def init_src(self):
        """nbgrader's call, after which the latest folder of each student is known: of those that are theirs."""
        self.problems = []
        super().init_src()
        self.src_records = [record for record in self.src_records if record["username"] != NOBODYS]

    def _path_to_record(self, path):
        """nbgrader's call for each folder; one that is not its student's, or says no time, counts for nobody."""
        found = EXCHANGE.fullmatch(Path(path).name)
        trouble = "" if found else "has no time in its name"
        if found and not is_folder_name(found["name"]):
            trouble = "names no student"
        elif found and self.check_owner:
            trouble = owner_trouble(path, found["name"])[1]
        if not trouble:
            try:
                return {**super()._path_to_record(path), "username": found["name"]}
            except ValueError:  # what nbgrader's reading of times raises
                trouble = "has no time in its name"
        who = found["name"] if found else Path(path).name
        self.problems.append(Problem(who, f"{Path(path).name} {trouble}", SETTLE, lost=True, ownerless=True))
        return {"username": NOBODYS, "filename": Path(path).name, "timestamp": datetime.min}

    def copy_files(self):
        """nbgrader's call; then the table of what could not be taken."""
        check, self.check_owner = self.check_owner, False  # done, and nbgrader's own would only warn
        try:
            super().copy_files()
        finally:
            self.check_owner = check
        lost = report(self.problems, self.coursedir, self.log, "exchange")
        if lost:
            self.fail(LOST % lost)

    def do_copy(self, src, dest, log=None):
        """nbgrader's call for one submission: `src` is student+week06+time, `dest` its place in submitted/."""
        collection = Collection(Roster(()), course_zone(self.config))
        label = label_of(Path(src).name, False, platform_of_name(Path(src).name, False))
        items = [] if Path(src).is_symlink() else items_of(src)
        attempt = Attempt(label.name, Path(src).name, items, collection.time_of(label.name, label, []), exchange=True)
        if not attempt.sort():
            attempt.say("none of the week's files was handed in", "ask for them", lost=True)
        Path(dest).mkdir(parents=True)
        write_files(Path(dest), attempt.files, attempt.time)
        self.problems += attempt.problems + collection.problems
