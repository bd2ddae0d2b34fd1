"""exercises_en/ is what the marks in reference/ say, and gives nothing away."""

import ast
import inspect
import re
import shutil

import pytest
import torch
import warm

from grading.authoring import stubs
from grading.authoring.marked import FIELDS, MarkError, exercises, split
from grading.paths import ROOT
from nanolm import impl
from nanolm.config import preset

MODULES = tuple(impl.CONTRACT)
MAX_LINES = 120

GOOD = '''"""Doc.

More.
"""


# exercise: f
# What     w
# Shapes   s
# Formula  f
# Decided  d
# Time     5 minutes, difficulty 1 of 5
def f():
    """f."""
    # solution: the task
    x = 1  # a comment counts as code

    # a whole line of comment does not
    return helper(x)
    # end


# solution
def helper(x):
    return x
# end
'''


def source(folder, module):
    return (ROOT / folder / f"{module}.py").read_text(encoding="utf-8")


def marked(module):
    return exercises(split(source("reference", module), module))


ALL = [(module, exercise) for module in MODULES for exercise in marked(module)]


@pytest.fixture(scope="module")
def student():
    return impl.load("exercises_en")


def definitions(text):
    """Every class and function of a file: qualified name -> (arguments, docstring)."""
    found = {}

    def visit(node, prefix):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.ClassDef, ast.FunctionDef)):
                name = f"{prefix}{child.name}"
                signature = [ast.unparse(b) for b in child.bases] if isinstance(child, ast.ClassDef) else (
                    ast.unparse(child.args), ast.unparse(child.returns) if child.returns else None
                )  # fmt: skip
                found[name] = (signature, ast.get_docstring(child))
                visit(child, f"{name}.")

    visit(ast.parse(text), "")
    return found


def code(line):
    """A line without its comment and its spaces."""
    return re.sub(r"\s+", "", line.split("  #")[0])


def test_committed_stubs_are_as_generated():
    assert stubs.disagreement(stubs.generate()) is None


@pytest.mark.parametrize("module", MODULES)
def test_names_arguments_and_docstrings_agree(module):
    ours, theirs = definitions(source("reference", module)), definitions(source("exercises_en", module))
    helpers = set(ours) - set(theirs)
    assert set(theirs) <= set(ours)
    assert not helpers & {name.split(".")[0] for name in impl.CONTRACT[module]}
    assert {name: ours[name] for name in theirs} == theirs


@pytest.mark.parametrize("module", MODULES)
def test_loaded_signatures_and_docstrings_agree(module, student):
    reference = impl.load("reference")
    for name in impl.CONTRACT[module]:
        ours, theirs = getattr(reference, name), getattr(student, name)
        assert inspect.signature(theirs) == inspect.signature(ours)
        assert theirs.__doc__ and theirs.__doc__ == ours.__doc__


def test_every_name_of_the_contract_is_an_exercise():
    assert [(module, exercise.name.split(".")[0]) for module, exercise in ALL] == [
        (module, name) for module, names in impl.CONTRACT.items() for name in names
    ]


def unstarted(student):
    """A call of every exercise that gets as far as its open part."""
    cfg = preset("tiny")
    x = torch.zeros(1, 2, cfg.D)
    cos, sin = torch.ones(2, cfg.H // 2), torch.zeros(2, cfg.H // 2)
    tokens = torch.zeros(1, 2, dtype=torch.long)
    return {
        "RMSNorm.forward": lambda: student.RMSNorm(cfg.D)(x),
        "ffn_dim": lambda: student.ffn_dim(cfg.D),
        "SwiGLU.forward": lambda: student.SwiGLU(cfg.D, cfg.F)(x),
        "rmsnorm_backward": lambda: student.rmsnorm_backward(x, torch.ones(cfg.D), 1e-5, x),
        "rope_frequencies": lambda: student.rope_frequencies(cfg.H),
        "rope_cos_sin": lambda: student.rope_cos_sin(torch.arange(2), torch.ones(cfg.H // 2)),
        "apply_rope": lambda: student.apply_rope(torch.zeros(2, cfg.H), cos, sin),
        "repeat_kv": lambda: student.repeat_kv(torch.zeros(1, 2, 3, 4), 2),
        "causal_mask": lambda: student.causal_mask(2, 2),
        "softcap": lambda: student.softcap(x, 50.0),
        "GroupedQueryAttention.forward": lambda: student.GroupedQueryAttention(cfg)(x, cos, sin),
        "Block.forward": lambda: student.Block(cfg)(x, cos, sin),
        "count_parameters": lambda: student.count_parameters(cfg),
        "kv_cache_bytes_per_token": lambda: student.kv_cache_bytes_per_token(cfg),
        "causal_lm_loss": lambda: student.causal_lm_loss(torch.zeros(1, 2, 5), tokens),
        "z_loss": lambda: student.z_loss(torch.zeros(1, 2, 5)),
        "masked_lm_corruption": lambda: student.masked_lm_corruption(tokens, torch.rand(1, 2), tokens, 4),
        "prefix_lm_mask": lambda: student.prefix_lm_mask(4, 2),
        "prefix_lm_targets": lambda: student.prefix_lm_targets(tokens, 1),
        "span_corruption": lambda: student.span_corruption(tokens[0], [(0, 1)], tokens[0]),
    }


@pytest.mark.parametrize(("module", "exercise"), ALL, ids=[exercise.name for _, exercise in ALL])
def test_stub_raises_with_file_function_and_command(module, exercise, student):
    with pytest.raises(NotImplementedError) as caught:
        unstarted(student)[exercise.name]()
    command = stubs.check_command(exercise.name)
    assert str(caught.value) == (
        f"exercises_en/{module}.py: {exercise.name} is not started. Check it with: {command}"
    )


@pytest.mark.parametrize(("module", "exercise"), ALL, ids=[exercise.name for _, exercise in ALL])
def test_header_has_every_field(module, exercise):
    lines = source("exercises_en", module).splitlines()
    title = "Bonus exercise" if exercise.bonus else "Exercise"
    start = lines.index(f"# {title}: {exercise.name}")
    header = []
    for line in lines[start + 1 :]:
        if not line.startswith("#"):
            break
        header.append(line)
    fields = [line.split()[1] for line in header if line[2] != " "]
    assert fields == [*FIELDS, "Check"]
    time, check = header[-2:]
    assert re.fullmatch(r"# Time     \d+ minutes, difficulty [1-5] of 5; our solution: \d+ lines?", time)
    assert check == f"# Check    {stubs.check_command(exercise.name)}"


@pytest.fixture(scope="module")
def collected():
    """Every test of the week as (file, name)."""
    found = warm.python("-m", "pytest", "tests", "--collect-only", "-q")
    return [tuple(line.split("::")[:2]) for line in found.stdout.splitlines() if "::" in line]


@pytest.mark.parametrize("name", [exercise.name for _, exercise in ALL])
def test_check_command_finds_tests(name, collected):
    file, _, chosen = stubs.CHECKS[name].partition(" -k ")
    for word in chosen.strip('"').split(" or "):
        assert not word or word not in file.removesuffix(".py")  # -k reads file names too: it would choose all
        assert [test for where, test in collected if where == file and word in test]


@pytest.mark.parametrize("module", MODULES)
def test_no_line_of_a_solution_is_in_the_stub(module):
    pieces = split(source("reference", module), module)
    secret = {code(line) for exercise in exercises(pieces) for line in exercise.solution}
    secret -= {code(line) for line in pieces if isinstance(line, str)}  # e.g. "if cap is None:", given elsewhere
    assert len(secret) > 1
    assert not secret & {code(line) for line in source("exercises_en", module).splitlines()}


@pytest.mark.parametrize("module", MODULES)
def test_stub_is_short_enough_to_read(module):
    assert len(source("exercises_en", module).splitlines()) <= MAX_LINES


def test_stub_says_whose_file_it_is():
    for module in MODULES:
        parsed = [ast.parse(source(folder, module)) for folder in ("reference", "exercises_en")]
        ours, theirs = (ast.get_docstring(tree, clean=False) for tree in parsed)
        assert theirs == f"{ours}\n{stubs.YOURS}\n"


def test_length_counts_helpers_but_no_comments():
    (exercise,) = exercises(split(GOOD, "f.py"))
    assert exercise.length == 4  # two in the body, two of the helper


@pytest.mark.parametrize(
    ("old", "new", "line", "sentence"),
    [
        ("    # end\n", "", 15, "has no '# end' at its own indentation"),
        ("    # end\n", "  # end\n", 15, "has no '# end' at its own indentation"),
        ("    # solution: the task\n", "", 19, "opens or closes nothing"),
        ("# solution: the task", "# Solution: the task", 15, "opens or closes nothing"),
        ("# solution: the task", "# solution", 15, "name the task"),
        ("# exercise: f\n", "# Exercise f\n", 7, "opens or closes nothing"),
        ("# exercise: f\n", "# exercise: g\n", 7, "must follow its header"),
        ("# Formula  f\n", "", 7, "needs the fields What, Shapes, Formula, Decided, Time"),
        ("\n# solution\n", "\n# solution: leak\n", 23, "at column 0 vanishes whole"),
        ("# end\n\n\n# solution\n", "# end\n\n\n# solution\n# solution\n", 23, "has no '# end'"),
    ],
)
def test_a_broken_mark_is_one_sentence_with_file_and_line(old, new, line, sentence):
    assert GOOD.count(old) >= 1
    with pytest.raises(MarkError) as caught:
        split(GOOD.replace(old, new, 1), "f.py")
    message = str(caught.value)
    assert message.startswith(f"f.py, line {line}: ") and sentence in message and "\n" not in message


def test_an_exercise_without_a_solution_is_refused():
    text = GOOD[: GOOD.index("    # solution")] + "    return 1\n"
    with pytest.raises(MarkError, match="f needs one region"):
        split(text, "f.py")


@pytest.fixture
def course(tmp_path):
    """A copy of what the generator needs."""
    for folder in ("grading", "nanolm", "reference", "exercises_en", "tests"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def run(course, *arguments):
    return warm.python("-m", "grading", "stubs", *arguments, cwd=course)


def test_check_finds_a_stub_that_was_edited(course):
    assert run(course, "--check").returncode == 0
    path = course / "exercises_en" / "rope.py"
    path.write_text(path.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    found = run(course, "--check")
    assert found.returncode != 0
    assert found.stderr == (
        "exercises_en/rope.py does not agree with reference/rope.py: run python -m grading stubs.\n"
    )
    assert run(course).returncode == 0
    assert run(course, "--check").returncode == 0


def test_check_finds_missing_and_unknown_files(course):
    (course / "exercises_en" / "rope.py").unlink()
    assert "exercises_en/rope.py is missing" in run(course, "--check").stderr
    assert run(course).returncode == 0
    (course / "exercises_en" / "extra.py").touch()
    assert "exercises_en/extra.py has no source" in run(course, "--check").stderr


def test_the_command_says_a_broken_mark_in_one_line(course):
    path = course / "reference" / "rope.py"
    path.write_text(path.read_text(encoding="utf-8").replace("    # end\n", "", 1), encoding="utf-8")
    found = run(course)
    assert found.returncode != 0
    assert found.stderr.startswith("reference/rope.py, line ") and found.stderr.count("\n") == 1
