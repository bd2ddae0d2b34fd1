"""The ledger: equal to the models that are built, by part, and to caches that are filled; and its command."""

import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch

from nanolm import impl
from nanolm.__main__ import main
from nanolm.cache import Cache
from nanolm.config import PRESETS, ModelConfig, preset
from nanolm.errors import ContractError
from nanolm.model import LanguageModel
from nanolm.recipe import ledger

REFERENCE = impl.load("reference")
TINY = preset("tiny")
RECIPES = {
    "modern": TINY,
    "tied": TINY.but(tie_embeddings=True, K=6),
    "gpt2": TINY.but(norm="layernorm", bias=True, positions="learned", ffn="gelu"),
    "gpt2-tied": TINY.but(norm="layernorm", bias=True, positions="learned", ffn="gelu", tie_embeddings=True),
    "gemma": TINY.but(ffn="geglu", norm_position="sandwich", qk_norm=True, windows=(3, None)),
    "post": TINY.but(norm_position="post", norm="layernorm"),
}
each_recipe = pytest.mark.parametrize("cfg", RECIPES.values(), ids=RECIPES)

# The 7B-class shape, all toggles off, and what it holds when they are turned on from left to right.
VANILLA = ModelConfig(
    L=32, D=4_096, N=32, V=128_000, T_max=8_192, tie_embeddings=True, ffn_dim=16_384,
    norm="layernorm", positions="learned", ffn="gelu", bias=True,
)  # fmt: skip
TOGGLES = {
    "vanilla": ({}, 7_002_005_504),
    "RMSNorm": ({"norm": "rmsnorm"}, 7_001_739_264),  # 65 biases of D go
    "RoPE": ({"positions": "rope"}, 6_968_184_832),  # T_max * D goes
    "SwiGLU": ({"ffn": "swiglu", "ffn_dim": 11_008}, 7_001_083_904),  # 11,008 is above 8D/3; the FFN's biases go
    "GQA": ({"K": 8}, 6_195_580_928),
    "no biases": ({"bias": False}, 6_195_253_248),
}


def built(cfg, implementation=REFERENCE):
    with torch.device("meta"):  # whole: the reference has no tables that could suffer
        return LanguageModel(cfg, implementation)


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_holds_what_is_built_and_counted(name):
    found = ledger.reckon(preset(name), REFERENCE)
    assert found.parameters.total == sum(p.numel() for p in built(preset(name)).parameters())
    assert found.counted == found.parameters.total and found.disagreement is None


def test_llama3_8b_by_part():
    sizes = ledger.parameters(preset("llama3-8b"), REFERENCE)
    assert (sizes.attention, sizes.ffn, sizes.norms) == (41_943_040, 176_160_768, 8_192)
    assert (sizes.layer, sizes.layers) == (218_112_000, 6_979_584_000)
    assert (sizes.embedding, sizes.head, sizes.final_norm, sizes.positions) == (525_336_576, 525_336_576, 4_096, 0)
    assert sizes.total == 8_030_261_248
    assert f"{sizes.ffn / sizes.layer:.0%}" == "81%"
    assert f"{(sizes.embedding + sizes.head) / sizes.total:.0%}" == "13%"
    assert f"{sizes.head / sizes.total:.1%}" == "6.5%"


def test_gpt2_small_by_part():
    sizes = ledger.parameters(preset("gpt2-small"), REFERENCE)
    assert (sizes.embedding, sizes.positions, sizes.head, sizes.total) == (38_597_376, 1_024 * 768, 0, 124_439_808)
    untied = ledger.parameters(preset("gpt2-small").but(tie_embeddings=False), REFERENCE)
    assert untied.head == untied.total - sizes.total == 38_597_376
    assert f"{untied.head / sizes.total:.1%}, {untied.head / untied.total:.1%}" == "31.0%, 23.7%"


def test_the_7b_shape_toggle_by_toggle():
    cfg = VANILLA
    for name, (change, expected) in TOGGLES.items():
        cfg = cfg.but(**change)
        found = ledger.reckon(cfg, REFERENCE)
        assert (name, found.parameters.total, found.counted) == (name, expected, expected)
        assert found.cache_per_token == (131_072 if cfg.K == 8 else 524_288)


@each_recipe
def test_parts_add_up_to_the_built_model(cfg):
    sizes, model = ledger.parameters(cfg, REFERENCE), built(cfg)
    assert sizes.total == sum(p.numel() for p in model.parameters())
    first = model.blocks[0]
    assert sizes.layer * cfg.L == sizes.layers
    assert sizes.attention == sum(p.numel() for p in first.attn.parameters())
    assert sizes.ffn == sum(p.numel() for p in first.ffn.parameters())
    assert sizes.norms == sum(p.numel() for name, p in first.named_parameters() if name.split(".")[0].endswith("norm"))
    assert sizes.head == (0 if cfg.tie_embeddings else cfg.V * cfg.D)


def test_a_model_of_one_layer_has_a_layer():
    sizes = ledger.parameters(TINY.but(L=1), REFERENCE)
    assert sizes.layer == sizes.layers == 9_000


def test_nothing_is_put_into_memory():
    code = (
        "import resource, sys\n"
        "from nanolm import impl\nfrom nanolm.recipe import ledger\n"
        "from nanolm.config import preset\n"
        "reference = impl.load('reference')\n"
        "ledger.reckon(preset('tiny'), reference)\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "ledger.reckon(preset('llama3-8b'), reference)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    pytest.importorskip("resource", reason="peak memory is read with the resource module, which Windows lacks")
    run = subprocess.run([sys.executable, "-c", code], cwd=impl.ROOT, capture_output=True, text=True, check=True)
    per_unit = 1 if sys.platform == "darwin" else 1024
    assert int(run.stdout) * per_unit < 64e6  # the parameters in fp32 would be 32 GB, one FFN matrix 235 MB


class Tables(torch.nn.Module):
    """A right attention that makes its table in __init__, reads one of its values and keeps it for all layers."""

    kept = None

    def __init__(self, cfg, layer=0):
        super().__init__()
        if Tables.kept is None:
            angles = torch.arange(cfg.T_max)[:, None] * REFERENCE.rope_frequencies(cfg.H)
            assert angles[1, 0].item() == 1.0
            Tables.kept = angles.cos()
        self.register_buffer("table", Tables.kept, persistent=False)
        self.w_q = torch.nn.Linear(cfg.D, cfg.N * cfg.H, bias=False)
        self.scale = torch.nn.Parameter(torch.randn(3, cfg.D))  # a raw parameter, drawn at once
        self.register_parameter("absent", None)


def test_tables_made_in_init_stay_real(monkeypatch):
    implementation = impl.load("reference")
    monkeypatch.setattr(implementation, "Block", Tables, raising=False)
    sizes = ledger.parameters(TINY, implementation)
    assert sizes.layers == TINY.L * (36 * 48 + 3 * 36)
    assert Tables.kept.device.type == "cpu"
    model = ledger.build_without_memory(TINY, implementation)
    assert {p.device.type for p in model.parameters()} == {"meta"}
    assert torch.nn.Linear(2, 2).weight.device.type == "cpu"  # nothing is left behind


def test_other_counts_are_said_with_the_difference():
    low = SimpleNamespace(**reference_names(), count_parameters=lambda cfg: REFERENCE.count_parameters(cfg) - 4_096)
    assert ledger.reckon(preset("llama3-8b"), low).disagreement == (
        "count_parameters says 8,030,257,152, but the built model holds 8,030,261,248: 4,096 too few."
    )
    high = SimpleNamespace(**reference_names(), count_parameters=lambda cfg: REFERENCE.count_parameters(cfg) + 1)
    assert ledger.reckon(TINY, high).disagreement.endswith(": 1 too many.")


@pytest.mark.parametrize("answer", [None, "12", 1.5, float("nan"), float("inf")])
def test_a_count_that_is_no_number_is_one_sentence(answer):
    student = SimpleNamespace(**reference_names(), count_parameters=lambda cfg: answer)
    with pytest.raises(ContractError, match="count_parameters gives .*, but the contract says a whole number"):
        ledger.reckon(TINY, student)


def reference_names():
    names = ("Block", "RMSNorm", "SwiGLU", "GroupedQueryAttention", "kv_cache_bytes_per_token")
    return {name: getattr(REFERENCE, name) for name in names}


# Cache, arithmetic, traffic ---------------------------------------------------------------------


def test_cache_at_32k():
    mha = preset("llama2-7b")
    assert ledger.cache_bytes(mha, REFERENCE, 32_768) == 17_179_869_184
    assert ledger.cache_bytes(mha.but(K=8), REFERENCE, 32_768) == 4_294_967_296


def test_windowed_layers_keep_their_window_only():
    mistral, gemma = preset("mistral-7b"), preset("gemma2-2b")
    assert ledger.cache_bytes(mistral, REFERENCE, 1_000) == 131_072 * 1_000
    assert ledger.cache_bytes(mistral, REFERENCE, 32_768) == 131_072 * 4_096
    assert ledger.cache_bytes(gemma, REFERENCE, 8_192) == 106_496 * (4_096 + 8_192) // 2


@pytest.mark.parametrize("windows", [None, 3, (2, None)])
def test_cache_bytes_are_what_a_full_cache_holds(windows):
    cfg = TINY.but(windows=windows)
    model, cache = LanguageModel(cfg, REFERENCE), Cache(cfg)
    for S in range(1, 8):
        with torch.no_grad():
            model(torch.zeros(1, 1, dtype=torch.long), cache)
        held = sum(2 * layer.k.numel() for layer in cache.layers)
        assert ledger.cache_bytes(cfg, REFERENCE, S, 4) == 4 * held


class CountMultiplyAdds(torch.utils._python_dispatch.TorchDispatchMode):
    """Counts the multiply-adds of every matrix product that is really done."""

    count = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if function.overloadpacket in (torch.ops.aten.mm, torch.ops.aten.bmm, torch.ops.aten.addmm):
            left = args[1] if function.overloadpacket is torch.ops.aten.addmm else args[0]
            self.count += result.numel() * left.shape[-1]
        return result


@each_recipe
def test_flops_are_those_of_a_real_forward(cfg):
    # a cap takes the attention that multiplies openly; the whole last row of scores is in sight then
    cfg, S = cfg.but(attn_softcap=50.0, windows=None), 9
    model, cache = LanguageModel(cfg, REFERENCE), Cache(cfg)
    with torch.no_grad():
        model(torch.zeros(1, S - 1, dtype=torch.long), cache)
        with CountMultiplyAdds() as counter:
            model(torch.zeros(1, 1, dtype=torch.long), cache)
    flops = ledger.forward_flops(cfg, ledger.parameters(cfg, REFERENCE), S)
    assert flops.total == 2 * counter.count
    assert flops.attention == 4 * cfg.L * cfg.N * cfg.H * S


def test_flops_of_llama3_8b():
    cfg = preset("llama3-8b")
    flops = ledger.forward_flops(cfg, ledger.parameters(cfg, REFERENCE), 8_192)
    matrices = 8_030_261_248 - 525_336_576 - 65 * 4_096  # all but the look-up and the gains
    assert flops.matmuls == 2 * matrices
    assert flops.attention == 4 * 32 * 4_096 * 8_192


def test_a_window_bounds_the_attention():
    cfg = preset("mistral-7b")
    sizes = ledger.parameters(cfg, REFERENCE)
    short, long = (ledger.forward_flops(cfg, sizes, S).attention for S in (4_096, 32_768))
    assert short == long == 4 * 32 * 4_096 * 4_096
    assert ledger.forward_flops(cfg.but(windows=None), sizes, 32_768).attention == 8 * long


def test_decoding_reads_every_weight_once_and_one_row_of_a_table():
    llama, gpt2 = preset("llama3-8b"), preset("gpt2-small")
    found = ledger.reckon(llama, REFERENCE, 1_000)
    assert found.traffic.weights == 2 * (8_030_261_248 - 525_336_576 + 4_096)
    assert found.traffic.cache == 131_072 * 1_000
    assert found.traffic.total == found.traffic.weights + found.traffic.cache
    tied = ledger.reckon(gpt2, REFERENCE, 1_024, 4)
    assert tied.traffic.weights == 4 * (124_439_808 - 1_024 * 768 + 768)  # the head reads all of the embedding


def test_a_learned_table_ends_the_context():
    ledger.reckon(preset("gpt2-small"), REFERENCE, 1_024)
    with pytest.raises(ValueError, match="1,025 tokens is longer than .* T_max = 1,024: token 1,025 has no row"):
        ledger.reckon(preset("gpt2-small"), REFERENCE, 1_025)
    with pytest.raises(ValueError, match="a context of 0 tokens holds nothing"):
        ledger.reckon(TINY, REFERENCE, 0)


# The command ------------------------------------------------------------------------------------


def test_the_command_prints_the_table(capsys):
    assert main(["budget", "llama3-8b", "--impl", "reference", "--context", "32768"]) == 0
    out, err = capsys.readouterr()
    assert err == "" and out.isascii()
    rows = {tuple(line.split()) for line in out.splitlines()}
    assert ("layer:", "FFN", "176,160,768", "80.8%") in rows
    assert ("head", "525,336,576", "6.5%") in rows
    assert ("total", "8,030,261,248", "100.0%") in rows
    assert "count_parameters says the same total." in out.splitlines()
    assert ("KV", "cache", "131,072", "bytes", "a", "token", "4.295", "GB", "in", "all") in rows
    assert "its token 32,768, 16 bits a number" in out


def test_the_command_takes_bytes_and_says_where_windows_cap(capsys):
    assert main(["budget", "gemma2-2b", "--impl", "reference", "--bytes", "1"]) == 0
    out = capsys.readouterr().out
    assert "53,248 bytes a token" in out and "13 of 26 layers capped at their window" in out
    assert main(["budget", "gemma2-2b", "--impl", "reference", "--context", "4096"]) == 0
    assert "capped" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["llama3-8b", "--impl", "exercises_en"], "budget.py: count_parameters is not started. Check it with: pytest"),
        (["llama4", "--impl", "reference"], "There is no preset 'llama4': choose one of tiny,"),
        (["gpt2-small", "--impl", "reference", "--context", "1025"], "token 1,025 has no row."),
        (["tiny", "--impl", "nowhere"], "NANOLM_IMPL is 'nowhere'"),
    ],
)
def test_what_is_missing_is_one_sentence(capsys, arguments, sentence):
    assert main(["budget", *arguments]) == 1
    out, err = capsys.readouterr()
    assert out == "" and sentence in err and err.count("\n") == 1


@pytest.mark.parametrize(
    ("body", "code", "says"),
    [
        (
            "return 1 / 0",
            1,
            "The implementation under test raised ZeroDivisionError: division by zero (budget.py, line",
        ),
        ("pass", 1, "count_parameters gives None, but the contract says a whole number"),
        ("return 5", 1, "count_parameters says 5, but the built model holds 22,428: 22,423 too few."),
        ("return 22_428.0", 0, "count_parameters says the same total."),
    ],
)
def test_a_students_count_is_held_against_the_model(tmp_path, capsys, body, code, says):
    for file in (impl.ROOT / "reference").glob("*.py"):
        (tmp_path / file.name).write_text(file.read_text(encoding="utf-8"), encoding="utf-8")
    with (tmp_path / "budget.py").open("a", encoding="utf-8") as budget:
        budget.write(f"\n\ndef count_parameters(cfg):\n    {body}\n")
    assert main(["budget", "tiny", "--impl", str(tmp_path)]) == code
    out, err = capsys.readouterr()
    assert says in out + err and "Traceback" not in err


@pytest.mark.parametrize(("option", "value"), [("--context", "0"), ("--context", "many"), ("--bytes", "-2")])
def test_an_impossible_option_is_refused(capsys, option, value):
    with pytest.raises(SystemExit) as refusal:
        main(["budget", "tiny", "--impl", "reference", f"{option}={value}"])
    assert refusal.value.code == 2
    assert f"argument {option}: " in capsys.readouterr().err
