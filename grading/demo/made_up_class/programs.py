"""The code files of the demo class: right programs, bank mistakes, half-finished, hostile and near-copied ones."""

import ast
import random
import re
from dataclasses import dataclass
from functools import cache

from grading.authoring.stubs import generate
from grading.paths import REFERENCE
from grading.proof import bank
from grading.proof.attacks.table import ATTACKS
from nanolm.impl import CONTRACT, FILE_OF

# A near-copy keeps the program and changes what a reader sees first: local names and remarks.
OTHER_NAMES = {
    "wide": "x_up", "mean_square": "ms", "gate": "opened", "angles": "phi", "exponents": "powers", "turned": "rotated",
    "scores": "logits", "mixed": "out", "whole": "everything", "r": "root", "n": "unit", "q": "queries", "k": "keys",
}  # fmt: skip
# What an attack's {names} stand for, as a student would guess them.
GUESSES = {"{course}": "/course", "{victim}": "/course/gradebook.db", "{submissions}": "/course/submitted"}


@dataclass(frozen=True)
class Program:
    """What a student's six files hold, as changes of the right program."""

    style: int = 0  # chooses how the right parts are written; 0 is as in reference/
    variants: tuple = ()
    mistakes: tuple = ()
    open: tuple = ()  # exercises that are still stubs, by dotted name
    attack: str = ""  # its class stands at the end of modules.py, in place of the right one
    copied: bool = False
    broken: str = ""  # a file that is no Python


NOT_STARTED = Program(open=("all of it",))


def files(program):
    """{file name: text} of exercises_en/ as this student hands it in."""
    stubs = generate()
    if program == NOT_STARTED:
        return stubs
    texts = _changed(program)
    for exercise in program.open:
        file = f"{FILE_OF[exercise.split('.')[0]]}.py"
        stub = bank.Replacement(file, exercise, _source(stubs[file], exercise))
        start, end, code = stub.span(texts[file])
        texts[file] = texts[file][:start] + code + texts[file][end:]
    texts = {name: _as_handed_in(text) for name, text in texts.items()}
    if program.attack:
        texts |= _with_attack(texts, ATTACKS[program.attack])
    if program.copied:
        texts = {name: _renamed(text) for name, text in texts.items()}
    if program.broken:
        texts[program.broken] = texts[program.broken].replace("return ", "retrun ", 1)
    return {"__init__.py": stubs["__init__.py"], **texts}


def _changed(program):
    """The right program with the mistakes and variants made, and as much in its own style as they leave room for."""
    texts, (variants, mistakes) = _reference(), _bank()
    changes = [*(variants[name] for name in program.variants), *(mistakes[name] for name in program.mistakes)]
    taken = [span for change in changes for span in _spans(change)]
    styles = [variant for variant in variants.values() if program.style and variant.only == "all"]
    random.Random(program.style).shuffle(styles)
    for variant in styles:
        spans = _spans(variant)
        if all(a[0] != b[0] or a[2] <= b[1] or b[2] <= a[1] for a in spans for b in taken):
            changes.append(variant)
            taken += spans
    return texts | bank.apply(texts, changes)


@cache
def _reference():
    return {f"{module}.py": (REFERENCE / f"{module}.py").read_text(encoding="utf-8") for module in CONTRACT}


@cache
def _bank():
    """Variants without the combinations, which would leave no room for each other; all mistakes."""
    variants = bank.load_variants()
    single = {name: variant for name, variant in variants.items() if not name.startswith("whole-")}
    return single, bank.load_mistakes()


@cache
def _spans(change):
    """Which lines of which file a change takes: (file, start, end) of each edit."""
    return [(edit.file, *edit.span(_reference()[edit.file])[:2]) for edit in change.edits]


def _source(text, exercise):
    """The source of a function or method, by its dotted name."""
    node = ast.parse(text)
    for name in exercise.split("."):
        node = next(child for child in node.body if getattr(child, "name", "") == name)
    return "\n".join(text.splitlines()[node.lineno - 1 : node.end_lineno])


def _as_handed_in(text):
    """The marked source as a student's file: the course's headers, the code, no marks."""
    text = re.sub(r"^# exercise: (\S+) \(bonus\)$", r"# Bonus exercise: \1", text, flags=re.M)
    text = re.sub(r"^# exercise: ", "# Exercise: ", text, flags=re.M)
    return re.sub(r"^ *# (solution\b.*|end)\n", "", text, flags=re.M)


def _with_attack(texts, attack):
    """modules.py with the attack's RMSNorm behind the right parts, and the files that stand beside it."""
    handed = attack.files(texts["rope.py"])
    hostile = handed["modules.py"]
    for word, guess in GUESSES.items():
        hostile = hostile.replace(word, guess)
    beside = {name: text for name, text in handed.items() if name not in ("modules.py", "rope.py")}
    return {**texts, "modules.py": f"{texts['modules.py']}\n\n{hostile}", **beside}


def _renamed(text):
    """The same program under other local names, without the remarks beside the code."""
    lines, nodes = text.splitlines(), list(ast.walk(ast.parse(text)))
    fixed = {node.arg for node in nodes if isinstance(node, ast.arg)}
    names = [node for node in nodes if isinstance(node, ast.Name) and node.id in OTHER_NAMES.keys() - fixed]
    for node in sorted(names, key=lambda node: (node.lineno, node.col_offset), reverse=True):
        line = lines[node.lineno - 1]
        lines[node.lineno - 1] = line[: node.col_offset] + OTHER_NAMES[node.id] + line[node.end_col_offset :]
    return "\n".join(re.sub(r"  # .*$", "", line) for line in lines) + "\n"
