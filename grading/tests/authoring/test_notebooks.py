"""Every notebook has what a class needs, and runs from top to bottom with right code, offline, in time."""

import json
import re
from concurrent.futures import ThreadPoolExecutor

import pytest

for package in ("nbclient", "nbformat", "jupytext", "ipywidgets", "matplotlib"):
    pytest.importorskip(package, reason=f"{package} is missing: pip install -e .[notebooks]")

import nbformat  # noqa: E402
from nbclient.exceptions import CellExecutionError  # noqa: E402

from grading.authoring import book, notebooks  # noqa: E402
from grading.demo import samples  # noqa: E402
from grading.paths import ROOT  # noqa: E402

NOTEBOOKS = sorted(notebooks.FOLDER.glob("*.ipynb"))
RIGHT = ("reference", str(samples.folder("all_right")))
SECONDS, MEGABYTES = 60, 3_000  # of one core's time: a clock on the wall would also measure who else is working
WIDGET = "application/vnd.jupyter.widget-view+json"

# Runs before the notebook: whoever asks the network is told that there is none.
OFFLINE = """
import socket
_connect = socket.socket.connect
def _refuse(self, address):
    if isinstance(address, tuple) and address[0] not in ("127.0.0.1", "::1", "localhost"):
        raise OSError(f"a notebook asked the network for {address}")
    return _connect(self, address)
socket.socket.connect = _refuse
"""

# Runs after it: moves every control through its values and says whether each changed its picture.
AFTERWARDS = """
import json, resource
from ipywidgets import Image, VBox
from ipywidgets.widgets.widget import _instances
moved = []
for box in [w for w in list(_instances.values()) if isinstance(w, VBox) and isinstance(w.children[-1], Image)]:
    for control in box.children[:-1]:
        first, seen = control.value, set()
        for option in control.options:
            control.value = option[1] if isinstance(option, tuple) else option
            seen.add(bytes(box.children[-1].value))
        control.value = first
        moved.append([control.description, len(seen)])
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({"moved": moved, "kilobytes": used.ru_maxrss, "seconds": used.ru_utime + used.ru_stime}))
"""


def cells(path, kind):
    """The sources of a notebook's cells of one kind."""
    return [cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == kind]


def named(paths):
    return {"argvalues": paths, "ids": [path.stem for path in paths]}


def test_notebooks_are_what_their_sources_give():
    assert notebooks.stale() == []


@pytest.mark.parametrize("path", **named(NOTEBOOKS))
def test_notebook_is_stored_without_outputs(path):
    stored = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    assert stored and all(cell.outputs == [] and cell.execution_count is None for cell in stored)


@pytest.mark.parametrize("path", **named(NOTEBOOKS))
def test_notebook_opens_with_its_question_and_ends_with_the_checkpoint(path):
    texts = cells(path, "markdown")
    assert texts[0].startswith(f"# {path.stem[:2]} ")
    assert "**The question.**" in texts[0] and "?" in texts[0]
    assert "## Checkpoint" in texts[-1]
    assert texts[-1].count("<details>") == texts[-1].count("</details>") >= 3
    assert all("?" in summary for summary in re.findall(r"<summary>(.*?)</summary>", texts[-1], flags=re.DOTALL))


@pytest.mark.parametrize("path", **named(NOTEBOOKS))
def test_notebook_names_only_tests_that_exist(path):
    source = "".join(file.read_text(encoding="utf-8") for file in sorted((ROOT / "tests").glob("test_*.py")))
    files = {file.stem for file in (ROOT / "tests").glob("test_*.py")}
    mentioned = set(re.findall(r"\btest_\w+", "\n".join(cells(path, "markdown"))))
    assert [name for name in sorted(mentioned - files) if f"def {name}(" not in source] == []
    assert mentioned - files


@pytest.mark.parametrize("path", **named(NOTEBOOKS))
def test_notebook_holds_no_solution(path):
    code = "\n".join(cells(path, "code"))
    assert not re.search(r"^\s*(from|import) (reference|exercises_\w+|grading)\b", code, flags=re.MULTILINE)


def executed(path, implementation):
    """The notebook with its outputs, run offline between the two cells above."""
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(OFFLINE))
    notebook.cells.append(nbformat.v4.new_code_cell(AFTERWARDS))
    book.execute(notebook, path.parent, implementation)
    return notebook


@pytest.fixture(scope="module")
def runs(request):
    """What the selected tests are going to ask for, two at a time: a kernel keeps one core busy."""
    wanted = [item.callspec.params for item in request.session.items if item.name.startswith("test_notebook_runs[")]
    with ThreadPoolExecutor(max_workers=2) as pool:
        yield {(asked["path"], asked["implementation"]): pool.submit(executed, **asked) for asked in wanted}


@pytest.mark.proof
@pytest.mark.parametrize("path", **named(NOTEBOOKS))
@pytest.mark.parametrize("implementation", RIGHT)
def test_notebook_runs(runs, path, implementation):
    notebook = runs[path, implementation].result()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    data = [output.data for output in outputs if output.output_type in ("display_data", "execute_result")]
    found = json.loads(outputs[-1].text)
    assert len([entry for entry in data if "image/png" in entry and WIDGET not in entry]) >= 3
    assert [entry for entry in data if WIDGET in entry]
    assert [control for control in found["moved"] if control[1] < 2] == []
    assert not [output for output in outputs if output.get("name") == "stderr"]
    assert found["seconds"] < SECONDS
    assert found["kilobytes"] < MEGABYTES * 1024


def test_a_stub_stops_the_notebook_with_one_sentence():
    cell = "from nanolm.classroom import active\nimport torch\nactive('RMSNorm').RMSNorm(4)(torch.ones(4))"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell)])
    with pytest.raises(CellExecutionError):
        book.execute(notebook, notebooks.FOLDER, "exercises_en")
    announced, error = notebook.cells[0].outputs
    assert "modules.py: RMSNorm.forward is not started" in announced.text
    assert len(error.traceback) == 2  # what is not started, and what to do
    assert error.traceback[0].startswith("exercises_en/modules.py: RMSNorm.forward is not started.")


def test_an_error_in_the_implementation_is_one_sentence(tmp_path):
    text = samples.files("all_right")["modules.py"]
    (tmp_path / "modules.py").write_text(text + "\n\ndef ffn_dim(D):\n    return D[0]\n", encoding="utf-8")
    cell = "from nanolm.classroom import active\nactive('ffn_dim').ffn_dim(4)"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell)])
    with pytest.raises(CellExecutionError):
        book.execute(notebook, notebooks.FOLDER, str(tmp_path))
    error = notebook.cells[0].outputs[-1]
    assert error.traceback[0].startswith("The implementation under test raised TypeError:")
    assert "modules.py, line" in error.traceback[0]
