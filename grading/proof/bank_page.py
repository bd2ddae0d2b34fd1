"""A page to browse the bank of mistakes: `python -m grading bank [--counts FILE] [--out FILE]`.

Part by part: what students write, what one sees, the question, the hints (folded), the test that
catches it, a picture of right and wrong output where they differ, and how often the class made it.
`--counts` is a JSON object of mistake id to number, as a class report holds it.
"""

import base64
import io
import json
import tempfile
from pathlib import Path

import jinja2
import torch
from matplotlib import pyplot

from grading.paths import REFERENCE, ROOT
from grading.proof.bank import load_metadata, load_mistakes, materialise
from machinery import parts
from machinery.draw import Draw, attention_shapes, block_shapes, no_turn
from nanolm.config import preset
from nanolm.impl import load

HELP = "write a page to browse the mistakes: symptom, picture, hints, test"
pyplot.switch_backend("Agg")

OUT = ROOT / "build" / "bank.html"
TEMPLATE = Path(__file__).parent / "bank_page.html"


# One small picture's worth of output for each part: rows and columns of numbers.


def of_rmsnorm(impl):
    norm = impl.RMSNorm(12, eps=0.1)
    norm.load_state_dict({"weight": Draw(1).gain(12)}, strict=False)
    return norm(Draw(2).normal(6, 12, mean=1.0) * 2.0 ** torch.arange(-3, 3)[:, None])


def of_swiglu(impl):
    draw, ffn = Draw(3), impl.SwiGLU(4, 10)
    ffn.load_state_dict({name: draw.normal(*p.shape) for name, p in ffn.named_parameters()}, strict=False)
    return ffn(draw.normal(6, 4))


def of_rope(impl):
    tables = impl.rope_cos_sin(torch.arange(3, 15), impl.rope_frequencies(8, 100.0))
    return impl.apply_rope(Draw(4).normal(1, 8).expand(12, 8).contiguous(), *tables)


def of_attention(impl, **changes):
    cfg, draw = preset("tiny").but(**changes), Draw(5)
    attention = impl.GroupedQueryAttention(cfg)
    attention.load_state_dict(draw.weights(attention_shapes(cfg)), strict=False)
    tables = impl.rope_cos_sin(torch.arange(8), impl.rope_frequencies(cfg.H, 100.0))
    return attention(draw.normal(1, 8, cfg.D), *tables)[0, :, :16]


def of_window(impl):
    return impl.causal_mask(8, 8, 3).float()


def of_block(impl):
    cfg, draw = preset("tiny"), Draw(6)
    block = impl.Block(cfg)
    block.load_state_dict(draw.weights(block_shapes(cfg)), strict=False)
    return block(draw.normal(1, 8, cfg.D), *no_turn(8, cfg.H))[0, :, :16]


def of_softcap(impl):
    return impl.softcap(torch.linspace(-120, 120, 96).view(6, 16), 50.0)


PICTURES = {
    "rmsnorm": of_rmsnorm,
    "swiglu": of_swiglu,
    "rope": of_rope,
    "attention": of_attention,
    "block": of_block,
    "qknorm": lambda impl: of_attention(impl, qk_norm=True),
    "softcap": of_softcap,
    "window": of_window,
}


def output(part, folder):
    """What the part's picture shows of one implementation, or None where it can't show anything."""
    try:
        with torch.no_grad():
            shown = PICTURES[part](load(str(folder)))
    except Exception:  # the mistake is that it raises: there is nothing to draw
        return None
    good = isinstance(shown, torch.Tensor) and shown.dim() == 2 and shown.is_floating_point()
    return shown.float() if good else None


def picture(right, wrong):
    """Right and wrong output side by side as a PNG in base64, or None where they look the same."""
    if right is None or wrong is None or right.shape != wrong.shape:
        return None
    if float((right - wrong.nan_to_num(1e9)).abs().max()) < 0.02 * float(right.abs().max()):
        return None
    limit = float(right.abs().max())
    figure, axes = pyplot.subplots(1, 2, figsize=(4.4, 1.5), dpi=80)
    for axis, values, title in zip(axes, (right, wrong), ("right", "this mistake"), strict=True):
        axis.imshow(values, cmap="PuOr", vmin=-limit, vmax=limit, aspect="auto", interpolation="nearest")
        axis.set_title(title, fontsize=9)
        axis.set_xticks([])
        axis.set_yticks([])
    figure.tight_layout()
    stream = io.BytesIO()
    figure.savefig(stream, format="png")
    pyplot.close(figure)
    return base64.b64encode(stream.getvalue()).decode("ascii")


def page(counts):
    """The whole page as HTML."""
    mistakes, metadata = load_mistakes(), load_metadata()
    right = {part: output(part, REFERENCE) for part in PICTURES}
    sections = []
    with tempfile.TemporaryDirectory() as room:
        for part in parts.PARTS:
            rows = []
            for mistake in (entry for entry in mistakes.values() if entry.part == part):
                folder = Path(room) / mistake.id
                materialise(REFERENCE, [mistake], folder)
                drawn = picture(right[part], output(part, folder)) if part in PICTURES else None
                rows.append({**metadata[mistake.id], "written": mistake.edits, "picture": drawn})
            sections.append((part, rows))
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
    return template.render(sections=sections, counts=counts, total=len(mistakes))


def read_counts(path):
    """Mistake id -> how often the class made it; SystemExit with a sentence for another kind of file."""
    try:
        counts = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SystemExit(
            f"{path} can't be read as JSON ({error}): give the counts that the class report wrote."
        ) from None
    unknown = sorted(set(counts) - set(load_metadata())) if isinstance(counts, dict) else [type(counts).__name__]
    if unknown:
        raise SystemExit(f"{path} counts {unknown[0]!r}, which is no mistake of the bank: is it from another version?")
    return counts


def add_arguments(parser):
    parser.add_argument("--counts", type=Path, help="JSON: mistake id -> how often the class made it")
    parser.add_argument("--out", type=Path, default=OUT, help=f"where to write the page ({OUT.relative_to(ROOT)})")


def run(args):
    counts = read_counts(args.counts) if args.counts else None
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(page(counts), encoding="utf-8")
    print(f"Wrote {args.out}")
    return 0
