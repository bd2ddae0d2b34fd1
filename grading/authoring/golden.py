"""Write the stored answers of the tests: `python -m grading golden [FOLDER]`.

Inputs and weights are drawn here in fp32, the answers come from the reference in fp64. The same
reference is held against Hugging Face transformers in grading/tests/.
"""

from pathlib import Path

import torch
from safetensors.torch import save_file

from machinery.draw import Draw, attention_shapes, block_shapes, model_shapes, swiglu_shapes
from nanolm.config import preset
from nanolm.impl import ROOT, load
from nanolm.model import LanguageModel

HELP = "write the tests' stored answers, from the reference in fp64"
FOLDER = ROOT / "tests" / "golden"
REFERENCE = load(str(ROOT / "reference"))


def right(part, weights, *inputs):
    """The part's output in fp64, without history."""
    part = part.double()
    part.load_state_dict({name: tensor.double() for name, tensor in weights.items()})
    with torch.no_grad():
        return part(*(i.double() if i.is_floating_point() else i for i in inputs))


def right_gradients(part, weights, upstream, x, *tables):
    """The gradients in fp64 of sum(output * upstream), of x and of every weight, under their names, and upstream."""
    leaf = x.double().requires_grad_()
    part = part.double()
    part.load_state_dict({name: tensor.double() for name, tensor in weights.items()})
    (part(leaf, *(table.double() for table in tables)) * upstream.double()).sum().backward()
    grads = {name: parameter.grad for name, parameter in part.named_parameters()}
    return {"upstream": upstream, **{f"grad.{name}": grad for name, grad in {"x": leaf.grad, **grads}.items()}}


def turn(positions, H, theta):
    """cos and sin in fp32, as a student's code gets them."""
    return REFERENCE.rope_cos_sin(positions, REFERENCE.rope_frequencies(H, theta))


def modules(seed):
    draw = Draw(seed + 1)
    gain, x = draw.gain(24), draw.normal(2, 3, 24, mean=0.5) * torch.tensor([0.01, 1.0, 100.0])[:, None]
    ffn, u = draw.weights(swiglu_shapes(12, 20)), draw.normal(2, 3, 12, std=2.0)
    leaf, upstream, scale = draw.normal(2, 3, 10).double().requires_grad_(), draw.normal(2, 3, 10), draw.gain(10)
    norm = REFERENCE.RMSNorm(10, 0.1).double()
    norm.load_state_dict({"weight": scale.double()})
    (norm(leaf) * upstream.double()).sum().backward()
    swiglu_gradients = right_gradients(REFERENCE.SwiGLU(12, 20), ffn, Draw(seed + 11).normal(2, 3, 12), u)
    return {
        "rmsnorm.weight": gain,
        "rmsnorm.x": x,
        "rmsnorm.y": right(REFERENCE.RMSNorm(24, 1e-3), {"weight": gain}, x),
        **{f"swiglu.{name}": tensor for name, tensor in ffn.items()},
        "swiglu.x": u,
        "swiglu.y": right(REFERENCE.SwiGLU(12, 20), ffn, u),
        **{f"swiglu.{name}": tensor for name, tensor in swiglu_gradients.items()},
        "backward.x": leaf.detach().float(),
        "backward.upstream": upstream,
        "backward.weight": scale,
        "backward.grad_x": leaf.grad,
        "backward.grad_weight": norm.weight.grad,
    }


def rope(seed):
    draw = Draw(seed + 2)
    x, positions = draw.normal(2, 3, 5, 8), torch.tensor([3, 7, 0, 41, 12])
    angles = positions[:, None].double() * 500.0 ** -(torch.arange(0, 8, 2).double() / 8)
    return {"x": x, "positions": positions, "y": REFERENCE.apply_rope(x.double(), angles.cos(), angles.sin())}


ATTENTION_HEADS = {"gqa": (6, 2), "mha": (4, 4), "mqa": (4, 1)}  # name -> N, K


def attention(seed):
    draw, tensors = Draw(seed + 3), {}
    for name, (N, K) in ATTENTION_HEADS.items():
        cfg = preset("tiny").but(N=N, K=K)
        weights, x = draw.weights(attention_shapes(cfg)), draw.normal(2, 7, cfg.D)
        cos, sin = turn(torch.arange(5, 12), cfg.H, cfg.rope_theta)
        found = {"x": x, "cos": cos, "sin": sin, **right_attention(cfg, weights, Draw(seed + 13), x, cos, sin)}
        tensors |= {f"{name}.{key}": tensor for key, tensor in found.items()}
    return tensors


def right_attention(cfg, weights, draw, *given):
    """Weights, output and gradients of one attention."""
    y = right(REFERENCE.GroupedQueryAttention(cfg), weights, *given)
    upstream = draw.normal(*y.shape)
    return {"y": y, **weights, **right_gradients(REFERENCE.GroupedQueryAttention(cfg), weights, upstream, *given)}


def block(seed):
    draw, cfg = Draw(seed + 4), preset("tiny")
    weights, x = draw.weights(block_shapes(cfg)), draw.normal(2, 7, cfg.D)
    cos, sin = turn(torch.arange(7), cfg.H, cfg.rope_theta)
    y = right(REFERENCE.Block(cfg), weights, x, cos, sin)
    gradients = right_gradients(REFERENCE.Block(cfg), weights, Draw(seed + 14).normal(*y.shape), x, cos, sin)
    return {"x": x, "cos": cos, "sin": sin, "y": y, **weights, **gradients}


def logits(seed):
    draw, tensors = Draw(seed + 5), {}
    for name, tied in (("untied", False), ("tied", True)):
        cfg = preset("tiny").but(tie_embeddings=tied)
        weights = draw.weights(model_shapes(cfg))
        tokens = draw.tokens(2, 9, V=cfg.V)
        model = LanguageModel(cfg, REFERENCE)
        y = right(model, weights, tokens)
        greedy = torch.tensor(list(model.generate(tokens[0], 8)))
        found = {"tokens": tokens, "logits": y, "greedy": greedy, **weights}
        tensors |= {f"{name}.{key}": tensor for key, tensor in found.items()}
    return tensors


def depth(seed):
    draw, tensors = Draw(seed + 6), {}
    for name, change in (("qknorm", {"qk_norm": True}), ("softcap", {"attn_softcap": 2.0}), ("window", {"windows": 3})):
        cfg = preset("tiny").but(**change)
        weights, x = draw.weights(attention_shapes(cfg)), draw.normal(2, 7, cfg.D)
        cos, sin = turn(torch.arange(7), cfg.H, cfg.rope_theta)
        found = {"x": x, "cos": cos, "sin": sin, **right_attention(cfg, weights, Draw(seed + 16), x, cos, sin)}
        tensors |= {f"{name}.{key}": tensor for key, tensor in found.items()}
    return tensors


FILES = (modules, rope, attention, block, logits, depth)


def write(folder=FOLDER, seed=0):
    """Write every file of stored answers into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for make in FILES:
        tensors = {name: tensor.detach().contiguous().clone() for name, tensor in make(10_000 + seed).items()}
        save_file(tensors, folder / f"{make.__name__}.safetensors")


def add_arguments(parser):
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER, help="where to write them (tests/golden)")


def run(args):
    """Write the stored answers."""
    write(args.folder)
    return 0
