"""The benches measure what they say, in small: every row is there, with finite positive numbers."""

import math

import nbformat
import pytest
import torch

from grading.__main__ import main
from grading.authoring import book
from grading.proof.bench import classroom, cuda, loop, models
from grading.proof.bench.ratio import HEAD, Ratio, in_turn, table
from nanolm.asking import timing
from nanolm.asking.clock import Clock
from nanolm.config import preset

HALF = Ratio("x", "ours", "theirs", (1.0, 2.0, 9.0), (2.0, 4.0, 9.0))


def sound(ratio):
    return all(math.isfinite(seconds) and seconds > 0 for seconds in (*ratio.a_seconds, *ratio.b_seconds))


def test_a_ratio_is_the_median_of_its_pairs():
    assert HALF.cells() == ("x", "ours", "theirs", "2.000", "4.000", "0.50", "0.50 to 1.00", "3")


def test_a_and_b_run_in_turn():
    calls = []
    ratio = in_turn("x", 2, ("A", lambda: calls.append("A")), ("B", lambda: calls.append("B")))
    assert calls == list("ABABAB") and len(ratio.pairs) == 2


def test_the_table_is_aligned_and_whole():
    lines = table([HALF, Ratio("a longer name", "A", "B", (1.0,), (1.0,))])
    assert len(lines) == 4 and len({len(line) for line in lines}) == 1
    assert [cell.strip() for cell in lines[0].strip("| ").split("|")] == list(HEAD)


def test_models_compute_the_same_and_are_timed(monkeypatch):
    pytest.importorskip("transformers")
    monkeypatch.setattr(torch, "set_num_threads", lambda count: None)
    found = list(models.ratios(1, preset("tiny"), T=8, PROMPT=4, NEW=3))
    assert [ratio.name for ratio in found] == ["a forward", "cached decoding"] and all(map(sound, found))


def test_models_that_differ_are_not_compared():
    with pytest.raises(SystemExit, match="can't be compared"):
        models._same(torch.zeros(3), torch.ones(3))


def test_both_models_decode_the_same_tokens():
    pytest.importorskip("transformers")
    from grading.proof.hf_twins import our_model, our_state, twin

    theirs = twin(preset("tiny"), "llama")
    ours = our_model(preset("tiny"), our_state(theirs, preset("tiny"), "llama"))
    prompt = torch.tensor([[5, 0, 7]])
    with torch.no_grad():
        assert torch.equal(models._ours_decodes(ours, prompt, 4), models._theirs_decodes(theirs, prompt, 4))


def test_a_slider_is_timed():
    (ratio,) = classroom.watch(2)
    assert sound(ratio)


def test_a_notebook_is_timed_against_a_bare_kernel(tmp_path, monkeypatch):
    cell, ran = nbformat.v4.new_code_cell("import nanolm"), []
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), tmp_path / "01_small.ipynb")
    monkeypatch.setattr(classroom, "NOTEBOOKS", tmp_path)
    monkeypatch.setattr(book, "execute", lambda notebook, *settings: ran.append(notebook.cells[0].source))
    (ratio,) = classroom.notebooks(1)
    assert ratio.name == "notebook 01_small" and ran == ["import nanolm", "import torch"]


def test_a_command_that_fails_ends_the_bench():
    with pytest.raises(SystemExit, match="exit code 3"):
        loop.command([loop.TESTS[0], "-c", "raise SystemExit(3)"])


def test_the_gpu_table_has_every_program_and_row():
    lines = list(cuda.lines("cpu", timing.SMALL, lambda device: Clock(device, pairs=1, shortest=0.0)))
    for name in ("reference", "torch-fused", *cuda.SLOW_ONES):
        start = lines.index(name) + 2
        rows = lines[start : start + len(timing.MEASUREMENTS)]
        assert all("expected" in row for row in rows), name
        assert lines[start + len(timing.MEASUREMENTS)].endswith("yes")
    assert cuda.COMMAND in lines[0]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_without_a_gpu_the_table_is_refused_in_one_sentence():
    with pytest.raises(SystemExit, match="needs a CUDA device.*GPU machine"):
        main(["bench", "cuda"])


def test_an_unknown_bench_is_refused(capsys):
    assert main(["bench", "nonsense"]) == 2
    assert "Choose from tests, grading, models" in capsys.readouterr().err
