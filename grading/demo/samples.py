"""Three sample submissions, made from reference/ and the bank when they are needed.

    all_right       right, in other words than the reference
    five_mistakes   the whole week, with five mistakes of the bank in five parts
    half_finished   right as far as it goes, then stubs
"""

import os
import tempfile

from grading.demo.made_up_class import programs
from grading.demo.made_up_class.programs import Program
from grading.paths import ROOT

SAMPLES = {
    "all_right": Program(
        variants=(
            "mask-by-tril", "repeat-by-expand", "attn-sdpa-repeat", "softcap-in-fp32", "block-named-steps",
            "budget-by-shapes", "budget-cache-from-parts", "rms-sum-over-D", "swiglu-own-linear",
            "ffn-dim-in-whole-numbers", "backward-by-rows",
            "masked-lm-by-index", "prefix-lm-by-tril", "spans-by-lists",
            "rope-exp-log-frequencies",
        )
    ),
    "five_mistakes": Program(
        mistakes=(
            "rmsnorm-centers", "ffn-dim-round-nearest", "rope-theta-hard-coded", "gqa-repeat-instead-of-interleave",
            "kvcache-uses-query-heads",
        )
    ),
    "half_finished": Program(
        open=(
            "rmsnorm_backward", "apply_rope", "repeat_kv", "causal_mask", "softcap", "GroupedQueryAttention.forward",
            "Block.forward", "count_parameters", "kv_cache_bytes_per_token", "causal_lm_loss", "z_loss",
            "masked_lm_corruption", "prefix_lm_mask", "prefix_lm_targets", "span_corruption",
        )
    ),
}  # fmt: skip


def files(name):
    """{file name: text} of a sample."""
    return programs.files(SAMPLES[name])


def folder(name):
    """The sample as a folder under build/, written where it is not there or not today's."""
    place = ROOT / "build" / "samples" / name
    place.mkdir(parents=True, exist_ok=True)
    for file, text in files(name).items():
        path = place / file
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            _write(path, text)
    return place


def _write(path, text):
    """Whole or not at all: another process may read it meanwhile."""
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", newline="\n", dir=path.parent, delete=False) as stream:
        stream.write(text)
    os.replace(stream.name, path)
