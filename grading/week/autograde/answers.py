"""The released notebook with a student's answers in it.

Every cell is the released one; of the submission only the text of the answers is taken, found by grade id, else by
what stands around it. What had to be found, put back or left out is said in a note to the student.
"""

import base64
import binascii
import copy
import re
from dataclasses import dataclass

from grading.authoring.cells import answer_of, is_answer, is_check, nbgrader_of
from grading.grader.inside.text import clean
from grading.grader.untrusted.notebooks import Cell

NAMES_LIMIT = 20
TEXT_LIMIT = 20_000  # letters of one answer
PICTURES = {"image/png": b"\x89PNG", "image/jpeg": b"\xff\xd8\xff"}
PICTURE_LIMIT = 4_000_000  # letters of a picture in base64
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
TAG = re.compile(r"<(?=[A-Za-z/!?])")
LINK = re.compile(r"\](?=\((?!attachment:)|\s*:)")
NAMED = re.compile(r"\]\(attachment:([^)]{0,200})\)")
BREAK = "\u200b"  # a space of no width: what is shown stays as it was written


@dataclass
class Found:
    """A cell of the submission that holds an answer, or a piece of it."""

    position: int
    cell: Cell
    by_id: bool  # it carries the answer's own grade id


def rebuild(released, cells):
    """(notebook, notes): a copy of the released notebook (an nbformat node) with the answers among `cells`."""
    notebook = copy.deepcopy(released)
    if not cells:
        return notebook, []
    known = {nbgrader_of(cell)["grade_id"]: cell for cell in notebook.cells if nbgrader_of(cell)}
    found = _collect(notebook, known, cells)
    notes = _about_structure(known, cells)  # before the answers are filled in
    for grade_id, pieces in found.items():
        notes += [f"the answer {grade_id} {sentence}" for sentence in _fill(known[grade_id], pieces)]
    return notebook, notes


def _collect(notebook, known, cells):
    """{answer's grade id: what was found of it, in order}."""
    answers = {cell.get("id"): cell for cell in notebook.cells if is_answer(cell)}
    by_text = {_plain(cell.source): cell for cell in notebook.cells if not is_answer(cell)}
    by_heading = {_heading(cell.source): cell for cell in notebook.cells if answer_of(cell)}
    found = {nbgrader_of(cell)["grade_id"]: [] for cell in answers.values()}
    current = None  # the answer that a cell without an id belongs to
    for position, cell in enumerate(cells):
        text = _plain(cell.text)
        by_id = cell.grade_id in found
        place = known.get(cell.grade_id) or by_text.get(text) or by_heading.get(_heading(cell.text))
        place = place or answers.get(cell.id)
        if place is None:  # a cell of the student's own
            if current is not None and cell.kind != "code":
                found[current].append(Found(position, cell, False))
        elif is_answer(place):
            current = nbgrader_of(place)["grade_id"]
            found[current].append(Found(position, cell, by_id))
        else:
            current = answer_of(place)
    return found


def _fill(place, found):
    """Put an answer's text into its cell; sentences that go on after its name."""
    stub = _plain(place.source)
    own = any(piece.by_id for piece in found)
    written = [piece for piece in found if _plain(piece.cell.text) not in ("", stub)]
    if not written:
        return [] if own else ["is missing: its cell is gone, and nothing stood in its place."]
    notes = [] if own else ["had lost its id and was found by its place."]
    taken = _together(written)
    if any(piece.by_id and piece not in taken for piece in written):
        notes.append("stands there more than once: the first one was taken.")
    if len(taken) > 1:
        notes.append(f"was spread over {len(taken)} cells, which were put together.")
    if any(piece.cell.kind == "code" for piece in taken):
        notes.append("was in a code cell: it is shown as text.")
    pictures = _pictures(taken)
    place.source, said = _harmless("\n\n".join(piece.cell.text.strip("\n") for piece in taken), pictures)
    if pictures:
        place.attachments = pictures
    return notes + said


def _together(written):
    """The first piece, what was split off it, and what was added below it; not a second copy."""
    taken, texts = [], set()
    for piece in written:
        text = _plain(piece.cell.text)
        goes_on = not taken or not piece.by_id or piece.position == taken[-1].position + 1
        if goes_on and text not in texts:
            taken.append(piece)
            texts.add(text)
    return taken


def _harmless(text, pictures):
    """A text that shows as it was written and does nothing else: no HTML, no link, no control letters."""
    notes = []
    if len(text) > TEXT_LIMIT:
        text = text[:TEXT_LIMIT]
        notes.append(f"is long: its first {TEXT_LIMIT:,} letters were taken.")
    text = CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    text = text.encode("utf-8", "replace").decode("utf-8")
    text = LINK.sub(f"]{BREAK}", TAG.sub(f"<{BREAK}", text))
    lost = [name for name in NAMED.findall(text) if name not in pictures]
    if lost:
        text = NAMED.sub(lambda match: match[0] if match[1] in pictures else f"]{BREAK}(a picture that was lost)", text)
        notes.append("shows a picture that could not be taken: attach it as PNG or JPEG.")
    return text, notes


def _pictures(taken):
    """The pictures of an answer that are what they say they are."""
    return {
        name: {kind: data}
        for piece in taken
        for name, bundle in piece.cell.attachments.items()
        if isinstance(bundle, dict) and re.fullmatch(r"[\w. -]+", name)
        for kind, data in bundle.items()
        if isinstance(data, str) and _is_picture(kind, data)
    }


def _is_picture(kind, data):
    try:
        start = base64.b64decode(data, validate=True)[:4] if len(data) <= PICTURE_LIMIT else b""
    except (ValueError, binascii.Error):
        return False
    return kind in PICTURES and start.startswith(PICTURES[kind])


def _about_structure(known, cells):
    """Sentences on cells that were deleted, doubled, moved, changed, or added under an id of their own."""
    checks = [grade_id for grade_id, cell in known.items() if is_check(cell)]
    seen = [cell.grade_id for cell in cells if cell.grade_id]
    order = [grade_id for grade_id in dict.fromkeys(seen) if grade_id in known]
    about = {
        "cells that were missing and are back": [name for name in checks if name not in seen],
        "cells that stood there more than once": [name for name in checks if seen.count(name) > 1],
        "cells that are not yours to change, put back": [
            cell.grade_id for cell in cells if cell.grade_id in known and _is_changed(cell, known[cell.grade_id])
        ],
        "cells under an id that this week does not have, left out": [name for name in seen if name not in known],
    }
    moved = order != sorted(order, key=list(known).index)
    return ["the cells stood in another order and were put back."] * moved + [
        f"{sentence}: {', '.join(clean(name, 40) for name in list(dict.fromkeys(names))[:NAMES_LIMIT])}."
        for sentence, names in about.items()
        if names
    ]


def _is_changed(cell, released):
    """Whether something was edited that is not the student's: points, kind, or the text of what is no answer."""
    if cell.points != nbgrader_of(released).get("points") or cell.kind != released.cell_type:
        return True
    return not is_answer(released) and _plain(cell.text) != _plain(released.source)


def _plain(text):
    return " ".join(text.split())


def _heading(text):
    first = text.strip().split("\n")[0]
    return _plain(first) if first.startswith("#") else None
