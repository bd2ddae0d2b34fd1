"""Generates exercises_en/ from reference/: `python -m grading stubs`, or with --check only compares.

Imports all stay: the student needs them. Everything else that is cut out is marked in reference/,
see marked.py.
"""

import ast
import sys

from grading.authoring.marked import Exercise, Gap, MarkError, split
from grading.paths import EXERCISES, REFERENCE
from nanolm.impl import CONTRACT

HELP = "generate exercises_en/ from reference/; what was solved there is overwritten"
YOURS = "This file is yours to edit: replace every raise below a TODO, keep all names, arguments and __init__."
PACKAGE = '"""The exercises: every file in this folder is yours to edit."""\n'

# The tests of each exercise: the file, and the word for -k where the file holds other exercises too.
CHECKS = {
    "RMSNorm.forward": "tests/test_rmsnorm.py",
    "ffn_dim": "tests/test_budget.py -k ffn_dim",
    "SwiGLU.forward": "tests/test_swiglu.py",
    "rmsnorm_backward": "tests/test_backward.py",
    "rope_frequencies": "tests/test_rope.py -k rope_frequencies",
    "rope_cos_sin": 'tests/test_rope.py -k "cos_sin or angles or 256 or tables_lie"',
    "apply_rope": "tests/test_rope.py",
    "repeat_kv": "tests/test_attention.py -k repeat_kv",
    "causal_mask": "tests/test_attention.py -k mask",
    "softcap": "tests/test_softcap.py",
    "GroupedQueryAttention.forward": "tests/test_attention.py",
    "Block.forward": "tests/test_block.py",
    "count_parameters": "tests/test_budget.py",
    "kv_cache_bytes_per_token": "tests/test_budget.py -k budget_cache",
    "causal_lm_loss": "tests/test_objectives.py -k objectives_loss",
    "z_loss": "tests/test_objectives.py -k zloss",
    "masked_lm_corruption": "tests/test_objectives.py -k objectives_masked",
    "prefix_lm_mask": "tests/test_objectives.py -k prefix",
    "prefix_lm_targets": "tests/test_objectives.py -k prefix_targets",
    "span_corruption": "tests/test_objectives.py -k spans",
}


def check_command(name):
    """The command that runs the tests of one exercise."""
    return f"pytest {CHECKS[name]}"


def stub(text, module, folder=EXERCISES.name):
    """The stub of one marked module; MarkError where a mark is broken."""
    lines = []
    for piece in split(text, f"{REFERENCE.name}/{module}.py"):
        if isinstance(piece, Exercise):
            lines += _header(piece)
        elif isinstance(piece, Gap) and piece.task:
            lines += _todo(piece, f"{folder}/{module}.py")
        elif isinstance(piece, Gap):
            while lines and not lines[-1]:
                lines.pop()  # the blank lines above a helper that is gone
        else:
            lines.append(piece)
    end = ast.parse(text).body[0].end_lineno  # the module's docstring stands first, above every mark
    lines[end - 1 : end] = ["", YOURS, '"""']
    return "\n".join(lines) + "\n"


def generate(folder=EXERCISES.name):
    """Every file of the exercises: {file name: text}."""
    files = {"__init__.py": PACKAGE}
    for module in CONTRACT:
        text = (REFERENCE / f"{module}.py").read_text(encoding="utf-8")
        files[f"{module}.py"] = stub(text, module, folder)
    return files


def disagreement(files, folder=EXERCISES):
    """One sentence on the first file of `folder` that is not as generated, or None."""
    for name, text in files.items():
        path = folder / name
        if not path.is_file():
            return f"{folder.name}/{name} is missing: run python -m grading stubs."
        if path.read_text(encoding="utf-8") != text:
            return f"{folder.name}/{name} does not agree with {REFERENCE.name}/{name}: run python -m grading stubs."
    for path in sorted(folder.glob("*.py")):
        if path.name not in files:
            return f"{folder.name}/{path.name} has no source in {REFERENCE.name}/: remove it, or add the source."
    return None


def _header(exercise):
    title = "Bonus exercise" if exercise.bonus else "Exercise"
    plural = "" if exercise.length == 1 else "s"
    *fields, time = exercise.header  # FIELDS: Time stands last
    return [
        f"# {title}: {exercise.name}",
        *fields,
        f"{time}; our solution: {exercise.length} line{plural}",
        f"# Check    {check_command(exercise.name)}",
    ]


def _todo(gap, file):
    opening = f"{gap.indent}raise NotImplementedError("
    return [
        f"{gap.indent}# TODO: {gap.task}",
        f'{opening}"{file}: {gap.exercise.name} is not started. "',
        f"{' ' * len(opening)}{_quoted(f'Check it with: {check_command(gap.exercise.name)}')})",
    ]


def _quoted(text):
    """A string of Python, in single quotes where double ones stand in it."""
    return f"'{text}'" if '"' in text else f'"{text}"'


def add_arguments(parser):
    parser.add_argument("--check", action="store_true", help="write nothing, only compare")


def run(args):
    """Write the exercises, or compare them; 1 with a sentence where they can't be made or are not up to date."""
    try:
        files = generate()
    except MarkError as error:
        print(error, file=sys.stderr)
        return 1
    if args.check:
        wrong = disagreement(files)
        if wrong:
            print(wrong, file=sys.stderr)
        return 1 if wrong else 0
    EXERCISES.mkdir(exist_ok=True)
    for name, text in files.items():
        (EXERCISES / name).write_text(text, encoding="utf-8", newline="\n")
    print(f"{EXERCISES.name}: {len(files)} files written.")
    return 0
