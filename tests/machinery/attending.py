"""What several test files ask of attention: drawn modules, tables, masks as pictures, the other half of a test.

B batch, T query length, S key length, D width, N query heads, K key/value heads, H head size.
"""

import math

import torch

from machinery import expect
from machinery.draw import Draw, attention_shapes, no_turn, tiny
from machinery.stored import stored
from nanolm.config import ModelConfig
from nanolm.errors import NotStarted


def attention(student, cfg, weights):
    return student.GroupedQueryAttention(cfg).load(weights)


def drawn_attention(student, seed, cfg=None):
    cfg = cfg or tiny()
    draw = Draw(seed)
    weights = draw.weights(attention_shapes(cfg))
    return draw, weights, attention(student, cfg, weights)


def turn(positions, H=8):
    """cos and sin (T, H/2) of fast frequencies, made here: RoPE is asked elsewhere."""
    angles = positions.double().unsqueeze(-1) * 0.5 ** torch.arange(H // 2)
    return angles.cos().float(), angles.sin().float()


def sees_the_past(part, x, tables, y):
    """The other half of tests that find nothing changed: y, the output for x, must change where an earlier token does.

    Code that mixes no tokens has no mask, no weights and no turn that could be right. Nor has code that mixes them
    whatever they say: the sum of two texts would then give the sum of their outputs.
    """
    other = x.clone()
    other[:, -2] = 3 - x[:, -2]
    cause = "Is the output a mix of the values of all tokens up to its own, w_o after that?"
    symptom = "the output of the last token does not hang on the token before it"
    changed = part(other, *tables)
    for output in (y, changed):
        expect.tensor(output, x.shape)
    expect.differ(changed[:, -1], y[:, -1], 1e-3, symptom, cause)
    cause = "Do the weights come from q and k, a softmax over their products?"
    together = part(x + other, *tables)
    expect.differ(together, y + changed, 1e-3, "the output mixes tokens whatever they say", cause)


# repeat_kv --------------------------------------------------------------------------------------


def picture(mask):
    return " / ".join("".join("x" if seen else "." for seen in row) for row in mask.tolist())


def right_picture(T, S, window=None):
    """What the last T of S tokens see, as `picture` draws it."""
    first = S - T
    rows = [[j <= first + t and (window is None or first + t - j < window) for j in range(S)] for t in range(T)]
    return picture(torch.tensor(rows))


def not_started(part, what):
    raise NotStarted(part, f"{what} is not started. Check it with: pytest tests/test_{part}.py")


def one_score(cfg, score):
    """Weights with which token 1 scores `score` against token 0 (before any cap or norm) and 0 against itself.

    Token t is unit vector t. Output 0 of token 1 is then the weight that it gives token 0.
    """
    weights = {name: torch.zeros(shape) for name, shape in attention_shapes(cfg).items()}
    size = (score * math.sqrt(cfg.H)) ** 0.5
    weights["w_q.weight"][0, 1] = size
    weights["w_k.weight"][0, 0] = size
    weights["w_v.weight"][3, 0] = 1.0
    weights["w_o.weight"][0, 3] = 1.0
    for name in ("q_norm.weight", "k_norm.weight"):
        if name in weights:
            weights[name] = torch.ones(cfg.H)
    return weights


def weight_of_token_0(student, cfg, score):
    y = attention(student, cfg, one_score(cfg, score))(torch.eye(cfg.D)[None, :2], *no_turn(2, cfg.H))
    expect.tensor(y, (1, 2, cfg.D))
    return y[0, 1, 0]


def narrow(**changes):
    return ModelConfig(L=1, V=7, D=6, N=2, K=1, H=10, ffn_dim=8, norm_eps=1e-6).but(**changes)


def matches_stored(student, name, cfg):
    answer = stored("depth")
    part = attention(student, cfg, {key: answer[f"{name}.{key}"] for key in attention_shapes(cfg)})
    y = part(*(answer[f"{name}.{key}"] for key in ("x", "cos", "sin")))
    expect.close(
        y,
        answer[f"{name}.y"],
        within=1e-3,
        symptom=f"the attention with {name} differs from the stored answer",
        cause="Which of the tests above is red? All green: compare the order of the steps with the header.",
    )


def drawn_qknorm(student, seed, **scaled):
    """A QK-norm attention; `scaled` multiplies rows of a matrix: name -> (rows, factor)."""
    cfg = tiny(qk_norm=True, norm_eps=1e-6)
    draw = Draw(seed)
    weights = draw.weights(attention_shapes(cfg))
    x = draw.normal(2, 5, 36)
    for name, (rows, factor) in scaled.items():
        weights[f"{name}.weight"][rows] *= factor
    part = attention(student, cfg, weights)
    if not scaled:
        plain = attention(student, cfg.but(qk_norm=False), {n: w for n, w in weights.items() if "norm" not in n})
        if float((part(x, *no_turn(5, 8)) - plain(x, *no_turn(5, 8))).abs().max()) < 1e-5:
            not_started("qknorm", "QK-norm in GroupedQueryAttention.forward")
    return x, part


def windowed_mask(student, T, S, window):
    mask = student.causal_mask(T, S, window)
    if picture(student.causal_mask(3, 3, 1)) == picture(student.causal_mask(3, 3)):
        not_started("window", "the window of causal_mask")
    expect.tensor(mask, (T, S), f"causal_mask({T}, {S}, {window})", torch.bool)
    return mask
