"""Stage by stage: what an implementation's parts give, held against the stored answers of the tests.

B batch, T query length, D width, H head size, N query heads, K key/value heads.
"""

from safetensors.torch import load_file

from nanolm.asking.subject import Subject
from nanolm.config import preset
from nanolm.errors import NotStarted, StudentError
from nanolm.impl import TESTS
from nanolm.model import LanguageModel

TOLERANCE = 1e-3  # right code in fp32 is ten times nearer


def compare_stages(implementation):
    """Print one line a stage: [OK], [DIFF], [SHAPE], or [STUB] and [ERROR]; returns {stage: mark}."""
    marks = {}
    for stage, (work, answer) in _stages(implementation).items():
        try:
            got = Subject(implementation).guard(work)
        except NotStarted as error:
            marks[stage], detail = "[STUB]", f"{error.name} is not started"
        except StudentError as error:
            marks[stage], detail = "[ERROR]", str(error)
        else:
            marks[stage], detail = _held_against(got, answer)
        print(f"{marks[stage]:<8}{stage:<36}{detail}")
    return marks


def _held_against(got, answer):
    if got.shape != answer.shape:
        return "[SHAPE]", f"{tuple(got.shape)}, stored {tuple(answer.shape)}"
    off = float((got.double() - answer).abs().max())
    return "[OK]" if off < TOLERANCE else "[DIFF]", f"largest difference {off:.1e}"


def _stages(impl):
    """{stage: (work, stored answer)}, from the smallest part to the whole model."""
    modules, rope, heads, block, logits = (
        load_file(TESTS / "golden" / f"{name}.safetensors")
        for name in ("modules", "rope", "attention", "block", "logits")
    )
    cfg = preset("tiny")

    def turned():
        return impl.apply_rope(rope["x"], *impl.rope_cos_sin(rope["positions"], impl.rope_frequencies(8, 500.0)))

    def whole():
        model = _loaded(LanguageModel(cfg, impl), logits, "untied.")
        return model(logits["untied.tokens"]).detach()

    def part(make, tensors, prefix, *inputs):
        def work():
            return _loaded(make(), tensors, prefix)(*(tensors[prefix + name] for name in inputs)).detach()

        return work

    inputs = ("x", "cos", "sin")
    return {
        "RMSNorm": (part(lambda: impl.RMSNorm(24, 1e-3), modules, "rmsnorm.", "x"), modules["rmsnorm.y"]),
        "SwiGLU": (part(lambda: impl.SwiGLU(12, 20), modules, "swiglu.", "x"), modules["swiglu.y"]),
        "RoPE": (turned, rope["y"]),
        "attention, N = 6, K = 2": (
            part(lambda: impl.GroupedQueryAttention(cfg), heads, "gqa.", *inputs),
            heads["gqa.y"],
        ),
        "block": (part(lambda: impl.Block(cfg), block, "", *inputs), block["y"]),
        "logits of two layers": (whole, logits["untied.logits"]),
    }


def _loaded(module, tensors, prefix):
    """The module with the tensors that carry its parameters' names; buffers may be its own."""
    names = {name for name, _ in module.named_parameters()}
    module.load_state_dict({name: tensors[prefix + name] for name in names}, strict=False)
    return module
