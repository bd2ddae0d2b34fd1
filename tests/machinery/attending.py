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
        tables = no_turn(5, cfg.H)
        sees_the_past(part, x, tables, part(x, *tables))
        cfg = narrow(qk_norm=True)
        silent = one_score(cfg, 5.0) | {"q_norm.weight": torch.zeros(cfg.H)}  # normed, all scores are 0
        y = attention(student, cfg, silent)(torch.eye(cfg.D)[None, :2], *no_turn(2, cfg.H))
        expect.tensor(y, (1, 2, cfg.D))
        if abs(float(y[0, 1, 0]) - 1 / (1 + math.exp(-5.0))) < 1e-4:
            not_started("qknorm", "QK-norm in GroupedQueryAttention.forward")
    return x, part


def windowed_mask(student, T, S, window):
    mask = student.causal_mask(T, S, window)
    if picture(student.causal_mask(3, 3, 1)) == right_picture(3, 3):
        not_started("window", "the window of causal_mask")
    expect.tensor(mask, (T, S), f"causal_mask({T}, {S}, {window})", torch.bool)
    return mask


def gradients_match_stored(student, file, name, cfg):
    """The gradients of this attention against stored ones, of x and of every weight."""
    answer = {
        key.removeprefix(f"{name}."): tensor for key, tensor in stored(file).items() if key.startswith(f"{name}.")
    }
    part = attention(student, cfg, {key: answer[key] for key in attention_shapes(cfg)})
    given = (answer[key] for key in ("x", "cos", "sin"))
    outcome = part.run(*given, upstream=answer["upstream"], training=True)
    expect.gradients(outcome, {key: answer[f"grad.{key}"] for key in ("x", *attention_shapes(cfg))}, 1e-3)


def same_for_any_number_of_heads(student, seed, cfg):
    """G = 6, 3 and 1 are one attention where the shared heads of w_k and w_v are written out for every query head."""
    draw = Draw(seed)
    x, tables = draw.normal(2, 6, cfg.D), no_turn(6, cfg.H)
    for K in (1, 2):
        shared = cfg.but(K=K)
        weights = draw.weights(attention_shapes(shared))
        apart = dict(weights)
        for name in ("w_k.weight", "w_v.weight"):
            heads = weights[name].view(K, cfg.H, cfg.D).repeat_interleave(cfg.N // K, dim=0)
            apart[name] = heads.reshape(cfg.N * cfg.H, cfg.D)
        got = attention(student, shared, weights)(x, *tables)
        expected = attention(student, cfg.but(K=cfg.N), apart)(x, *tables)
        expect.tensor(got, x.shape)
        expect.differ(got[:, 1:], got[:, :1].expand(2, 5, cfg.D), 0.05, "all tokens get one output", "Is x in it?")
        cause = "Is the number of heads only a matter of who shares whose keys and values?"
        symptom = f"K = {K} is another attention than K = {cfg.N} with its heads written out"
        expect.close(got, expected, 1e-3, symptom, cause)


def follows_long_texts(student, seed, **changes):
    """1,030 tokens: the last sees the first and nobody sees the future, as in a text that is shorter."""
    T = 1_030
    cfg, draw = narrow(N=1, **changes), Draw(seed)
    part = attention(student, cfg, draw.weights(attention_shapes(cfg), std=0.2))
    x, tables = draw.normal(1, T, cfg.D), no_turn(T, cfg.H)
    y, shorter = part(x, *tables), part(x[:, : T - 3], *(table[: T - 3] for table in tables))
    expect.tensor(y, x.shape, f"the output for T = {T}")
    cause = "Is there a mask, table or loop of a fixed length?"
    symptom = "in a text of 1,030 tokens the first 1,027 are not what they are in one of 1,027"
    expect.close(y[:, : T - 3], shorter, 1e-4, symptom, cause)
    mean = part(x.transpose(0, 1)[-1:], *no_turn(1, cfg.H))  # the last token alone
    expect.differ(y[:, -1], mean[:, 0], 1e-2, "the last of 1,030 tokens sees only itself", cause)


def window_is_a_slice(student, seed, **changes):
    """With a window of 3 the last of any 3 tokens comes out as in a text of these 3 alone, whatever else is on."""
    draw, window, cfg = Draw(seed), 3, tiny(**changes)
    weights = draw.weights(attention_shapes(cfg))
    x = draw.normal(1, 7, cfg.D)
    got = attention(student, cfg.but(windows=window), weights)(x, *no_turn(7, cfg.H))
    slices = x[0].unfold(0, window, 1).transpose(1, 2)  # (5, 3, D)
    alone = attention(student, cfg, weights)(slices, *no_turn(window, cfg.H))[:, -1]
    expect.tensor(got, x.shape)
    cause = "Is the window in force with every other option, and do they stay in force with it?"
    symptom = "with a window of 3 a token does not see just itself and the two before it"
    expect.close(got[0, window - 1 :], alone, 1e-4, symptom, cause)
