"""The same intake under nbgrader's own commands: `nbgrader zip_collect week06` and `nbgrader collect week06`.

In nbgrader_config.py:

    c.ZipCollectApp.extractor_plugin = "grading.collect.plugins.WeekExtractor"
    c.ZipCollectApp.collector_plugin = "grading.collect.plugins.WeekCollector"
    c.ExchangeFactory.collect = "grading.collect.plugins.WeekExchangeCollect"

    c.WeekExtractor.times = "times.csv"  # where the platform's names tell no times

zip_collect reads downloaded/week06/archive/, where what the platform gave is put.
"""

from pathlib import Path

from nbgrader.exchange.default import ExchangeCollect
from nbgrader.plugins import ExtractorPlugin, FileNameCollectorPlugin
from traitlets import List, Unicode

from grading.collect import ASSIGNMENT
from grading.collect.attempt import Attempt
from grading.collect.desk import Desk, SourceError, read_times, without_time
from grading.collect.names import label_of
from grading.collect.parcels import items_of
from grading.collect.problems import as_csv
from grading.collect.roster import Roster, roster_of
from grading.collect.store import write_files
from grading.databases import DatabaseError
from grading.grader.inside.wire import clean
from grading.grader.results import write
from grading.times import TimeError, course_zone

LOST = f"%d with something not collected, all others are collected: see intake-{ASSIGNMENT}.csv"


def report(problems, folder, log):
    """Log each row of the intake's table and write it as CSV; of how many people something could not be collected."""
    problems = sorted(set(problems))
    write(Path(folder) / f"intake-{ASSIGNMENT}.csv", as_csv(problems))
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
            desk = Desk(roster, zone, *(read_times(times, roster, zone) if self.times else ()))
            found, timeless = set(), []
            for attempt in desk.attempts(Path(archive_path)):
                folder = Path(extracted_path, attempt.student)
                folder.mkdir(parents=True)
                write_files(folder, attempt.files, attempt.time)
                found.add(attempt.student)
                timeless += [attempt.student] if attempt.time is None else []
            named = {problem.who for problem in desk.problems}
            desk.nothing_from({student.id for student in roster.students} - found - named)
            self._end_with(report([*desk.problems, *without_time(timeless)], self.parent.coursedir.root, self.log))
        except (SourceError, DatabaseError, TimeError) as error:
            self.parent.fail(f"Nothing is collected: {error}")

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

    def copy_files(self):
        """nbgrader's call; then the table of what could not be taken."""
        self.problems = []
        super().copy_files()
        lost = report(self.problems, self.coursedir.root, self.log)
        if lost:
            self.fail(LOST % lost)

    def do_copy(self, src, dest, log=None):
        """nbgrader's call for one submission: `src` is student+week06+time, `dest` its place in submitted/."""
        desk = Desk(Roster(()), course_zone(self.config))
        label = label_of(Path(src).name, is_file=False)
        items = [] if Path(src).is_symlink() else items_of(src)
        attempt = Attempt(label.name, Path(src).name, items, desk.time_of(label.name, label, []))
        if not attempt.sort():
            attempt.say("none of the week's files was handed in", "ask for them", lost=True)
        Path(dest).mkdir(parents=True)
        write_files(Path(dest), attempt.files, attempt.time)
        self.problems += attempt.problems + desk.problems
