"""Reads the marks in reference/, the one marked source.

    # exercise: RMSNorm.forward            (or "... (bonus)") opens the header of the class or function below
    # What     ...                         a field: its name, then its text, indented lines go on
    class RMSNorm(nn.Module):
        def forward(self, x):
            # solution: norm and gain      cut out; the words after the colon name the task in the stub
            ...
            # end                          at the same indentation
    # solution                             at column 0: for the solution only, vanishes whole
    def helper(): ...
    # end

A broken mark is a MarkError whose message is one sentence with file and line.
"""

import re
from dataclasses import dataclass, field

FIELDS = ("What", "Shapes", "Formula", "Decided", "Time")
HEADER = re.compile(r"# exercise: (?P<name>[\w.]+)(?P<bonus> \(bonus\))?")
START = re.compile(r"(?P<indent> *)# solution(: (?P<task>.+))?")
END = re.compile(r"(?P<indent> *)# end")
ALMOST = re.compile(r"\s*#\s*((exercise|solution)\b|end\s*$)", re.IGNORECASE)


class MarkError(Exception):
    """A mark in the source is broken; the message is one sentence for the maintainer."""


@dataclass
class Exercise:
    """One exercise: what its header says and what its solution holds."""

    name: str  # RMSNorm.forward
    bonus: bool
    header: list[str] = field(default_factory=list)  # the comment lines below the mark
    solution: list[str] = field(default_factory=list)  # every line cut out, helpers at column 0 included

    @property
    def length(self):
        """Lines of our solution, without comments and blank lines."""
        return sum(1 for line in self.solution if line.strip() and not line.strip().startswith("#"))


@dataclass
class Gap:
    """The place of one cut-out region. A gap without a task stood at column 0 and leaves nothing."""

    exercise: Exercise
    indent: str
    task: str | None
    lines: list[str]  # what was cut out
    line: int  # the first of them in the source


def split(text, path):
    """The text as a list of pieces in order: plain lines (str), headers (Exercise) and cut-out regions (Gap)."""
    lines, pieces, exercise, at = text.splitlines(), [], None, 0
    while at < len(lines):
        if match := HEADER.fullmatch(lines[at]):
            exercise = Exercise(match["name"], bool(match["bonus"]))
            start, at = at, at + 1
            while at < len(lines) and lines[at].startswith("#"):
                exercise.header.append(lines[at])
                at += 1
            _check_header(exercise, lines[at] if at < len(lines) else "", f"{path}, line {start + 1}")
            pieces.append(exercise)
        elif match := START.fullmatch(lines[at]):
            end = _end_of(lines, at, match["indent"], path)
            pieces.append(_gap(exercise, match, lines[at + 1 : end], at + 2, f"{path}, line {at + 1}"))
            exercise.solution += lines[at + 1 : end]
            at = end + 1
        elif ALMOST.match(lines[at]):
            raise MarkError(
                f"{path}, line {at + 1}: the mark {lines[at].strip()!r} opens or closes nothing here: "
                f"check its spelling, its indentation and its partner."
            )
        else:
            pieces.append(lines[at])
            at += 1
    _check_solved(pieces, path)
    return pieces


def exercises(pieces):
    """The exercises among the pieces, in order."""
    return [piece for piece in pieces if isinstance(piece, Exercise)]


def _end_of(lines, start, indent, path):
    for at in range(start + 1, len(lines)):
        if END.fullmatch(lines[at]) and END.fullmatch(lines[at])["indent"] == indent:
            return at
        if ALMOST.match(lines[at]):
            break
    raise MarkError(
        f"{path}, line {start + 1}: this '# solution' has no '# end' at its own indentation before the next mark: "
        f"close it."
    )


def _gap(exercise, match, lines, line, where):
    if exercise is None:
        raise MarkError(f"{where}: a '# solution' needs a '# exercise: NAME' above it.")
    if match["indent"] and not match["task"]:
        raise MarkError(f"{where}: name the task for the student in a few words: '# solution: TASK'.")
    if match["task"] and not match["indent"]:
        raise MarkError(f"{where}: a '# solution' at column 0 vanishes whole, so it names no task: write '# solution'.")
    return Gap(exercise, match["indent"], match["task"], lines, line)


def _check_header(exercise, below, where):
    found = tuple(line[2:].split()[0] for line in exercise.header if re.match(r"# \w", line))
    if found != FIELDS:
        raise MarkError(f"{where}: the header of {exercise.name} needs the fields {', '.join(FIELDS)}, in this order.")
    if not re.match(rf"(class|def) {exercise.name.split('.')[0]}\b", below):
        raise MarkError(f"{where}: the class or function of exercise {exercise.name} must follow its header.")


def _check_solved(pieces, path):
    for exercise in exercises(pieces):
        gaps = [piece for piece in pieces if isinstance(piece, Gap) and piece.exercise is exercise and piece.task]
        if len(gaps) != 1:
            raise MarkError(
                f"{path}: {exercise.name} needs one region '# solution: TASK' ... '# end' in its body, "
                f"but has {len(gaps)}."
            )
