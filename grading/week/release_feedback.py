"""`nbgrader release_feedback week06`, and formgrader's button: each page to the one student whom it is for.

In nbgrader_config.py:

    c.ExchangeFactory.release_feedback = "grading.week.release_feedback.WeekReleaseFeedback"

nbgrader's own stops at the first student without a key or a time, so that one who handed in elsewhere keeps the page
from all others; it takes two students with one key for one; and whoever has renamed the notebook never finds the page.
"""

import os
from collections import Counter
from pathlib import Path

from nbgrader.exchange.default import ExchangeReleaseFeedback
from nbgrader.utils import notebook_hash

from grading.week.feedback_key import key_in

NAMES_LIMIT = 20  # notebooks of one submission


class WeekReleaseFeedback(ExchangeReleaseFeedback):
    """nbgrader's, for every student by itself."""

    def copy_files(self):
        """nbgrader's call: put each page into the exchange; then fail, with a sentence for each, where one can't go."""
        keys = {page: key_in(page.parent) for page in self._pages()}
        shared = {key for key, count in Counter(filter(None, keys.values())).items() if count > 1}
        lost = []
        for page, key in keys.items():
            student = self._student(page)
            if key is None:
                self.log.error("%s did not hand in through the exchange: give them %s yourself", student, page)
            elif key in shared:
                self.log.error("%s and another student have one and the same key: find out why, and give them %s "
                               "yourself", student, page)  # fmt: skip
            else:
                self._put(page, key.decode("ascii"), student)
                continue
            lost.append(student)
        if not keys:
            self.fail(f"there is no feedback on {self.coursedir.assignment_id} to hand out: run  "
                      f"nbgrader generate_feedback {self.coursedir.assignment_id}  first")  # fmt: skip
        if lost:
            self.fail(f"{len(lost)} of {len(keys)} pages could not be handed out, all others were")

    def _pages(self):
        """The feedback pages of those who are asked for, of the assignment's own notebook."""
        place = self.coursedir.format_path(self.coursedir.feedback_directory, ".", ".")
        excluded = set(self.coursedir.student_id_exclude.split(","))
        asked = self.coursedir.student_id or "*"
        found = Path(place).glob(f"{asked}/{self.coursedir.assignment_id}/{self.coursedir.assignment_id}.html")
        return sorted(page for page in found if self._student(page) not in excluded)

    @staticmethod
    def _student(page):
        return page.parent.parent.name

    def _put(self, page, key, student):
        """One page under the name that its student looks for, whole at any moment."""
        for notebook in self._notebooks(key, student):
            place = Path(self.dest_path, f"{notebook_hash(secret=key, notebook_id=notebook)}.html")
            aside = place.with_suffix(".new")
            aside.write_bytes(page.read_bytes())
            aside.chmod(0o664 if self.coursedir.groupshared else 0o644)
            os.replace(aside, place)
        self.log.info("Released feedback for student '%s' on assignment '%s/%s'", student, self.coursedir.course_id,
                      self.coursedir.assignment_id)  # fmt: skip

    def _notebooks(self, key, student):
        """What the student's own copy calls the notebook: fetching looks for a page under each name there."""
        own = self.coursedir.assignment_id
        inbound = Path(self.course_path, "inbound")
        for folder in inbound.glob(f"{student}+{own}+*"):
            if key_in(folder) == key.encode("ascii"):
                names = sorted(path.stem for path in folder.glob("*.ipynb"))[:NAMES_LIMIT]
                return names if names and own not in names else [own]
        return [own]
