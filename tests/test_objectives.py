"""Questions to objectives.py: the losses, and what each objective asks of the same tokens (bonus).

B batch, T query length, V vocabulary.
"""

import math

import pytest
import torch

from machinery import expect
from machinery.draw import Draw
from machinery.kinds import leaves_torch_as_it_was, on_meta, same_in_any_layout, same_with_gradients

IGNORED = -100


def sure_of(tokens, V, size=30.0):
    """Logits (B, T, V) that put `size` on the token that really comes next, 0 elsewhere."""
    logits = torch.zeros(*tokens.shape, V)
    logits[:, :-1].scatter_(2, tokens[:, 1:, None], size)
    return logits


# causal_lm_loss ---------------------------------------------------------------------------------


@pytest.mark.points(2)
def test_objectives_loss_predicts_the_next_token(student):
    tokens = Draw(175).renamed(torch.tensor([[3, 1, 4, 1, 5, 0, 2, 6]]), V=7)
    loss = student.causal_lm_loss(sure_of(tokens, 7), tokens)
    cause = "Do the logits at t meet the token at t + 1, shifted once?"
    expect.close(loss, 0.0, 1e-3, "a model that is sure of every next token has a loss", cause)
    loss = student.causal_lm_loss(sure_of(tokens.flip(1), 7), tokens)
    expect.differ(loss, 0.0, 1.0, "a model that is sure of the wrong tokens has no loss", cause)


@pytest.mark.points(1)
def test_objectives_loss_is_a_mean_in_nats(student):
    V = Draw(176).whole(7, 5, 40)
    tokens = Draw(161).tokens(2, 6, V=V)
    loss = student.causal_lm_loss(torch.zeros(2, 6, V), tokens)
    cause = "Is it the mean over the T - 1 targets of each row of -log p?"
    expect.close(loss, math.log(V), 1e-4, "equal logits do not cost log V", cause)


@pytest.mark.points(1)
def test_objectives_loss_does_not_cross_rows(student):
    tokens = Draw(177).renamed(torch.tensor([[3, 1, 4, 1], [5, 2, 6, 5]]), V=7)
    loss = student.causal_lm_loss(sure_of(tokens, 7), tokens)
    cause = "Is each row shifted by itself, before the rows are joined?"
    expect.close(loss, 0.0, 1e-3, "the end of one row is asked for the start of the next", cause)
    loss = student.causal_lm_loss(sure_of(tokens.flip(0), 7), tokens)
    expect.differ(loss, 0.0, 1.0, "each row is asked for the other one's tokens without a loss", cause)


@pytest.mark.points(1)
def test_objectives_loss_ignores_masked_targets(student):
    draw = Draw(162)
    tokens, logits = draw.tokens(2, 6, V=7), draw.normal(2, 6, 7, std=3.0)
    tokens[1, 2:] = IGNORED
    short = student.causal_lm_loss(logits[1:, :2], tokens[1:, :2])
    first = student.causal_lm_loss(logits[:1], tokens[:1])
    cause = "Is the sum divided by the number of targets that count (5 and 1 here), not by all of them?"
    got = student.causal_lm_loss(logits, tokens)
    expect.close(got, (5 * first + short) / 6, 1e-4, "ignored targets change the mean", cause)
    expect.differ(got, 0.0, 0.1, "a model that is not sure has no loss", "Is the result the mean of -log p?")
    expect.differ(first, short, 1e-3, "two texts cost the same", "Is the result the mean of -log p?")
    tokens = draw.tokens(2, 6, V=7)
    largest = int(tokens[:, 1:].max())  # of the targets, is the one that does not count
    by_token = student.causal_lm_loss(logits, tokens, largest)
    by_default = student.causal_lm_loss(logits, torch.where(tokens == largest, IGNORED, tokens))
    expect.close(by_token, by_default, 1e-4, "another ignore_index has another effect", "Is the argument used?")


@pytest.mark.points(1)
def test_objectives_loss_without_targets_is_zero(student):
    loss = student.causal_lm_loss(torch.zeros(1, 4, 7), torch.full((1, 4), IGNORED))
    expect.close(loss, 0.0, 1e-6, "a text with no target at all has a loss", "What is 0 divided by 0?")


@pytest.mark.points(1)
def test_objectives_loss_is_stable_for_large_logits(student):
    logits = torch.zeros(1, 2, 3)
    logits[0, 0, 1] = ahead = float(Draw(178).whole(200, 150, 300))
    loss = student.causal_lm_loss(logits, torch.tensor([[2, 0]]))
    cause = "Is log_softmax (or logsumexp) used, and not the log of a softmax, which is 0 here?"
    expect.close(loss, ahead, 1e-2, "a target 200 below the best logit has another cost", cause)


@pytest.mark.points(1)
def test_objectives_loss_is_fp32(student):
    draw = Draw(163)
    logits, tokens = draw.normal(2, 40, 50, std=3.0).bfloat16(), draw.tokens(2, 40, V=50)
    loss = student.causal_lm_loss(logits, tokens)
    expect.tensor(loss, (), "the loss of bf16 logits", torch.float32)
    fine = student.causal_lm_loss(logits.float(), tokens)
    cause = "Are the logits cast to fp32 before anything else?"
    expect.close(loss, fine, 1e-4, "bf16 logits give another loss", cause)
    logs = logits.double() - logits.double().logsumexp(dim=-1, keepdim=True)  # log p of every token
    right = -sum(logs[b, t, tokens[b, t + 1]] for b in range(2) for t in range(39)) / 78
    expect.close(fine, float(right), 1e-4, "the loss of random logits is not the mean of -log p", cause)
    expect.differ(fine, 0.0, 0.1, "a model that is not sure has no loss", "Is the result the mean of -log p?")


@pytest.mark.points(0)
def test_objectives_loss_has_a_gradient_and_leaves_its_inputs(student):
    draw = Draw(164)
    logits, tokens = draw.normal(2, 5, 7), draw.tokens(2, 5, V=7)
    outcome = student.causal_lm_loss.run(logits, tokens, upstream=torch.tensor(1.0))
    expect.that(outcome.grad is not None, "no gradient reaches the logits", "Is there a detach or an .item()?")
    last = float(outcome.grad[:, -1].abs().max())
    cause = "Nothing follows the last token: does its row of logits stay out?"
    expect.close(last, 0.0, 1e-7, "the logits at the last position get a gradient", cause)
    for got, given in zip(outcome.inputs, (logits, tokens), strict=True):
        expect.identical(got, given, "the caller's tensor was changed", "Is there an operation in place?")


def right_loss(logits, tokens):
    """The mean of -log p over all targets, in fp64."""
    logits = logits.double()
    at_targets = logits[:, :-1].gather(2, tokens[:, 1:, None])[..., 0]
    return float((logits[:, :-1].logsumexp(dim=-1) - at_targets).mean())


@pytest.mark.points(0)
def test_objectives_loss_gradient_is_the_softmax_less_the_target(student):
    draw = Draw(441)
    logits, tokens = draw.normal(2, 5, 7, std=2.0), draw.tokens(2, 5, V=7)
    outcome = same_with_gradients(student.causal_lm_loss, (logits, tokens), torch.tensor(1.0))
    expected = torch.zeros(2, 5, 7)
    expected[:, :-1] = logits[:, :-1].softmax(dim=-1) - torch.nn.functional.one_hot(tokens[:, 1:], 7)
    cause = "Is something detached, or rounded on the way?"
    expect.that(outcome.grad is not None, "no gradient reaches the logits", cause)
    expect.close(outcome.grad, expected / 8, 1e-4, "the gradient of the logits is wrong", cause)


@pytest.mark.points(0)
def test_objectives_loss_without_targets_has_a_gradient_of_zero(student):
    upstream, nothing = torch.tensor(1.0), torch.full((1, 4), IGNORED)
    cause = "What is 0 divided by 0, and its derivative? clamp the count at 1."
    for logits, tokens in ((torch.ones(1, 4, 7), nothing), (torch.ones(2, 1, 7), torch.zeros(2, 1, dtype=torch.long))):
        outcome = student.causal_lm_loss.run(logits, tokens, upstream=upstream)
        expect.close(outcome.output, 0.0, 1e-6, "a text with no target at all has a loss", cause)
        if outcome.grad is not None:  # a plain 0 that hangs on nothing is right too
            expect.close(outcome.grad, 0.0, 1e-6, "a text with no target at all gives a gradient", cause)


@pytest.mark.points(0)
def test_objectives_loss_of_edge_equal_and_long_sizes(student):
    draw, cause = Draw(442), "Is every axis named by its place, and nothing of a fixed length?"
    for B, T, V in ((1, 2, 1), (1, 2, 3), (5, 5, 5), (3, 4, 3), (1, 1_100, 5)):
        logits, tokens = draw.normal(B, T, V, std=2.0), draw.tokens(B, T, V=V)
        symptom = f"the loss for B = {B}, T = {T}, V = {V} is wrong"
        expect.close(student.causal_lm_loss(logits, tokens), right_loss(logits, tokens), 1e-4, symptom, cause)


@pytest.mark.points(0)
def test_objectives_loss_takes_any_dtype_and_layout(student):
    draw = Draw(443)
    logits, tokens = draw.normal(1, 6, 7, std=2.0).repeat(3, 1, 1), draw.tokens(1, 6, V=7).repeat(3, 1)
    exact = right_loss(logits, tokens)
    for dtype, within in ((torch.float64, 1e-5), (torch.float16, 1e-2)):
        loss = student.causal_lm_loss(logits.to(dtype), tokens)
        wide = loss.dtype in (torch.float32, torch.float64)
        expect.that(wide, f"the loss of {dtype} logits is too coarse", "Is it at least fp32?", "fp32", loss.dtype)
        expect.close(
            loss, exact, within, f"the loss of {dtype} logits is wrong", "Are logits cast to fp32 where coarser?"
        )
    same_in_any_layout(student.causal_lm_loss, logits, tokens, layouts=("transposed", "expanded"), within=1e-4)
    expect.stays_on_meta(lambda: student.causal_lm_loss(on_meta(2, 5, 7), on_meta(2, 5, dtype=torch.long)), ())


@pytest.mark.points(0)
def test_objectives_loss_of_very_large_logits(student):
    logits = torch.tensor([[[1e4, -1e4, 0.0], [0.0, 0.0, 0.0]], [[3e4, 3e4, -3e4], [0.0, 0.0, 0.0]]])
    cause = "Does something overflow, or end in a clamp? log_softmax and logsumexp take any logits."
    for targets, expected in (([0, 0], math.log(2) / 2), ([2, 1], 1e4 / 2 + math.log(2) / 2)):
        tokens = torch.tensor([[0, targets[0]], [0, targets[1]]])
        loss = student.causal_lm_loss(logits, tokens)
        expect.close(loss, expected, 0.05, "the loss of logits of 10,000 is wrong", cause)


# z_loss -----------------------------------------------------------------------------------------


def of_log_z(values):
    """Logits (1, len(values), 2) whose log Z are these."""
    return torch.tensor(values)[None, :, None] - math.log(2) + torch.zeros(1, len(values), 2)


@pytest.mark.points(2)
def test_objectives_zloss_values(student):
    cause = "Is it the mean of (log Z)^2, log Z = logsumexp of the logits themselves: square first, mean then?"
    z = Draw(167).real(2.0, 0.5, 3.0)
    symptom = f"the z-loss of log Z = {z:g} and {-z:g} is wrong"
    expect.close(student.z_loss(of_log_z([z, -z]), 1.0), z * z, 1e-3, symptom, cause)
    expect.close(student.z_loss(of_log_z([0.0]), 1.0), 0.0, 1e-4, "the z-loss of Z = 1 is not 0", cause)
    expect.close(student.z_loss(of_log_z([3.0, 1.0]), 1.0), 5.0, 1e-3, "the z-loss of log Z = 3 and 1 is wrong", cause)


@pytest.mark.points(1)
def test_objectives_zloss_uses_its_coefficient(student):
    z, coefficient = of_log_z([10.0]), Draw(179).real(0.5, 0.1, 0.9)
    cause = "Is the coefficient used as it comes, 0 too, with 1e-4 where none is given?"
    half, nothing, default = student.z_loss(z, coefficient), student.z_loss(z, 0.0), student.z_loss(z)
    for got, expected in ((half, 100 * coefficient), (nothing, 0.0), (default, 0.01)):
        expect.close(got, expected, 1e-4, "the coefficient does not have its effect", cause)


@pytest.mark.points(1)
def test_objectives_zloss_counts_masked_positions_only(student):
    mask = torch.tensor([[True, False, True]])
    hidden = Draw(168).real(9.0, 6.0, 12.0)
    got = student.z_loss(of_log_z([1.0, hidden, 3.0]), 1.0, mask)
    cause = "Is the mean taken over the positions where mask is True?"
    expect.close(got, 5.0, 1e-3, "positions that don't count change the z-loss", cause)
    nothing = student.z_loss(of_log_z([1.0, 2.0]), 1.0, torch.zeros(1, 2, dtype=torch.bool))
    expect.close(nothing, 0.0, 1e-6, "where no position counts the z-loss is not 0", "What is 0 divided by 0?")


@pytest.mark.points(1)
def test_objectives_zloss_is_stable_and_fp32(student):
    z = float(Draw(197).whole(200, 150, 250))
    got = student.z_loss(of_log_z([z]), 1.0)
    expect.close(got, z * z, 1.0, "the z-loss at log Z = 200 is wrong", "Does exp overflow? torch has logsumexp.")
    logits = Draw(165).normal(2, 40, 50, std=3.0).bfloat16()
    coarse, fine = student.z_loss(logits, 1.0), student.z_loss(logits.float(), 1.0)
    expect.tensor(coarse, (), "the z-loss of bf16 logits", torch.float32)
    expect.close(coarse, fine, 1e-3, "bf16 logits give another z-loss", "Are the logits cast to fp32 first?")
    exact = float(logits.double().logsumexp(dim=-1).pow(2).mean())
    expect.close(fine, exact, 1e-3, "the z-loss of random logits is wrong", "Is log Z the logsumexp over V?")


@pytest.mark.points(0)
def test_objectives_zloss_pulls_log_z_to_zero(student):
    outcome = student.z_loss.run(of_log_z([3.0]), 1.0, upstream=torch.tensor(1.0))
    expect.that(outcome.grad is not None, "no gradient reaches the logits", "Is there a detach or an .item()?")
    cause = "Does the gradient flow through log Z: 2 log Z times the softmax?"
    expect.close(outcome.grad, 3.0, 1e-3, "the gradient at log Z = 3 is wrong", cause)


@pytest.mark.points(0)
def test_objectives_zloss_gradient_is_its_formulas(student):
    draw = Draw(444)
    logits = draw.normal(2, 3, 5, std=2.0)
    mask = torch.tensor([[True, False, True], [False, True, True]])
    outcome = student.z_loss.run(logits, 0.5, mask, upstream=torch.tensor(1.0))
    log_z = logits.logsumexp(dim=-1, keepdim=True)
    cause = "Does every position that counts give coefficient * 2 log Z * softmax / their number?"
    expect.close(outcome.output, float(0.5 * (log_z[..., 0] ** 2)[mask].mean()), 1e-3, "the z-loss is wrong", cause)
    expect.that(outcome.grad is not None, "no gradient reaches the logits", cause)
    expected = 0.5 * 2 * log_z * logits.softmax(dim=-1) * mask[..., None] / 4
    expect.close(outcome.grad, expected, 1e-3, "the gradient of the logits is wrong", cause)
    nothing = student.z_loss.run(logits, 0.5, torch.zeros(2, 3, dtype=torch.bool), upstream=torch.tensor(1.0))
    if nothing.grad is not None:
        cause = "What is 0 divided by 0, and its derivative?"
        expect.close(nothing.grad, 0.0, 1e-6, "where no position counts there is a gradient", cause)


@pytest.mark.points(0)
def test_objectives_zloss_takes_any_shape_and_layout(student):
    draw, cause = Draw(445), "Does the code name the last axis only, and no rank?"
    for shape in ((5,), (1, 1), (4, 4, 4), (2, 3, 2, 5), (1, 1_100, 3)):
        logits = draw.normal(*shape, std=2.0)
        expected = float(logits.double().logsumexp(dim=-1).pow(2).mean())
        expect.close(student.z_loss(logits, 1.0), expected, 1e-3, f"the z-loss of logits of {shape} is wrong", cause)
    same_in_any_layout(student.z_loss, draw.normal(1, 3, 4, 5).repeat(2, 1, 1, 1), 1.0, layouts=("transposed",))
    large = student.z_loss(torch.full((1, 2, 3), 1e4), 1e-4)
    expect.close(large / 1e4, 1.0, 1e-2, "the z-loss of logits of 10,000 is off by a factor", "Does exp overflow?")
    expect.stays_on_meta(lambda: student.z_loss(on_meta(2, 5, 7)), ())


# Masked LM --------------------------------------------------------------------------------------


def corrupted(student, seed, noise, **options):
    """Which token stands at each noise, and what the student's function shows and asks at each of them.

    In the public run they stand in the order of their noise, and the first token is 10.
    """
    draw = Draw(seed)
    first, order = draw.whole(10, 11, 60), draw.order(len(noise))
    tokens, noise = torch.arange(first, first + len(noise))[None], torch.tensor([noise])[:, order]
    shown, asked = student.masked_lm_corruption(tokens, noise, tokens + 100, 9, **options)
    for got, name in ((shown, "inputs"), (asked, "targets")):
        expect.tensor(got, tokens.shape, f"the {name}", real=False)
    back = order.argsort()
    return tuple(each[0, back].tolist() for each in (tokens, shown, asked))


@pytest.mark.points(2)
def test_objectives_masked_shows_masks_random_tokens_and_the_token(student):
    tokens, inputs, targets = corrupted(student, 169, [0.0, 0.119, 0.121, 0.134, 0.136, 0.149, 0.151, 0.9])
    cause = "Of the picked 15%, do 80% show the mask token, 10% a random token, 10% themselves?"
    random = [token + 100 for token in tokens[2:4]]
    expect.same(inputs, [9, 9, *random, *tokens[4:]], "the inputs are wrong", cause)
    cause = "Are targets asked for where noise < rate, also where the token is shown as it is?"
    expect.same(targets, [*tokens[:6], IGNORED, IGNORED], "the targets are wrong", cause)


@pytest.mark.points(1)
def test_objectives_masked_uses_its_rate(student):
    rate = Draw(202).real(0.5, 0.4, 0.7)
    noise = [rate * share for share in (0.0, 0.78, 0.82, 0.88, 0.92, 0.98, 1.02)]
    tokens, inputs, targets = corrupted(student, 170, noise, rate=rate, ignore_index=-7)
    cause = "Do all three shares follow the argument rate, and targets ignore_index?"
    expected = [9, 9, tokens[2] + 100, tokens[3] + 100, *tokens[4:]]
    expect.same(inputs, expected, "the inputs at rate 0.5 are wrong", cause)
    expect.same(targets, [*tokens[:6], -7], "the targets at rate 0.5 are wrong", cause)


@pytest.mark.points(1)
def test_objectives_masked_gives_77_signals_of_512(student):
    tokens = Draw(166).tokens(1, 512, V=61)
    noise = torch.linspace(0, 1, 513)[:512]
    outcome = student.masked_lm_corruption.run(tokens, noise[None], tokens, 60)
    signals = int((outcome.output[1] != IGNORED).sum())
    cause = "15% of 512 is 77; a causal LM gets 511 from the same tokens, 6.6 times as many."
    expect.same(signals, 77, "masked LM gives another number of signals", cause)
    expect.close(511 / signals, 6.6363636, 1e-3, "a causal LM does not give 6.6 times as many", cause)
    expect.identical(outcome.inputs[0], tokens, "the caller's tokens were changed", "Do you write into tokens?")


# Prefix LM --------------------------------------------------------------------------------------


@pytest.mark.points(1)
def test_objectives_prefix_mask_opens_the_prefix(student):
    draw = Draw(171)
    T, prefix = draw.whole(5, 5, 9), draw.whole(2, 2, 4)
    mask = student.prefix_lm_mask(T, prefix)
    expect.tensor(mask, (T, T), f"prefix_lm_mask({T}, {prefix})", torch.bool)
    got = " / ".join("".join("x" if seen else "." for seen in row) for row in mask.tolist())
    cause = "Does every token see the whole prefix, and beyond it only itself and what came before?"
    seen = [max(prefix, t + 1) for t in range(T)]  # T = 5, prefix 2: xx... / xx... / xxx.. / xxxx. / xxxxx
    expected = " / ".join("x" * count + "." * (T - count) for count in seen)
    expect.same(got, expected, "the mask is wrong (x = may attend)", cause)


@pytest.mark.points(0)
def test_objectives_prefix_of_zero_is_causal(student):
    got, causal = student.prefix_lm_mask(4, 0), torch.ones(4, 4, dtype=torch.bool).tril()
    expect.tensor(got, (4, 4), "prefix_lm_mask(4, 0)", torch.bool)
    expect.same(got.tolist(), causal.tolist(), "a prefix of 0 is not the causal mask", "Is it key < prefix?")
    expect.stays_on_meta(lambda: student.prefix_lm_mask(4, 2, device="meta"), (4, 4))


@pytest.mark.points(1)
def test_objectives_prefix_targets_leave_the_prefix_out(student):
    draw = Draw(172)
    a, prefix = draw.whole(10, 11, 60), draw.whole(3, 1, 3)
    tokens = torch.arange(a, a + 8).view(2, 4)
    outcome = student.prefix_lm_targets.run(tokens, prefix)
    cause = "Are the first `prefix` entries ignored and the others kept, without a shift?"
    expected = [[IGNORED] * prefix + row[prefix:] for row in tokens.tolist()]
    expect.same(outcome.output.tolist(), expected, "the targets are wrong", cause)
    expect.identical(outcome.inputs[0], tokens, "the caller's tokens were changed", "Do you write into tokens?")
    other = student.prefix_lm_targets(tokens, 1, -7)[0].tolist()
    expect.same(other, [-7, a + 1, a + 2, a + 3], "the targets with another ignore_index are wrong", cause)


# Span corruption --------------------------------------------------------------------------------


@pytest.mark.points(2)
def test_objectives_spans_become_sentinels(student):
    draw = Draw(173)
    a, first, second = draw.whole(10, 11, 60), draw.whole(1, 1, 2), draw.whole(6, 5, 6)
    ends = first + draw.whole(2, 1, 2), second + draw.whole(3, 1, 3)
    tokens, sentinels = torch.arange(a, a + 10), torch.tensor([99, 98, 97])
    inputs, targets = student.span_corruption(tokens, [(first, ends[0] - first), (second, ends[1] - second)], sentinels)
    t = tokens.tolist()  # public: 10 99 13 14 15 98 19, and 99 11 12 98 16 17 18 97
    cause = "Does each span leave one sentinel, in order, and everything else stay?"
    expected = [*t[:first], 99, *t[ends[0] : second], 98, *t[ends[1] :]]
    expect.same(inputs.tolist(), expected, "the inputs are wrong", cause)
    cause = "Does the answer name each sentinel before its span and end with the last one?"
    expected = [99, *t[first : ends[0]], 98, *t[second : ends[1]], 97]
    expect.same(targets.tolist(), expected, "the targets are wrong", cause)


@pytest.mark.points(1)
def test_objectives_spans_at_the_edges(student):
    a = Draw(174).whole(10, 11, 60)
    tokens, sentinels = torch.arange(a, a + 5), torch.tensor([99, 98, 97])
    cause = "Does it work where a span begins the text or ends it, and where there is none?"
    inputs, targets = student.span_corruption(tokens, [(0, 1), (3, 2)], sentinels)
    expect.same(inputs.tolist(), [99, a + 1, a + 2, 98], "the inputs with spans at both ends are wrong", cause)
    expect.same(targets.tolist(), [99, a, 98, a + 3, a + 4, 97], "the targets with spans at both ends are wrong", cause)
    inputs, targets = student.span_corruption(tokens, [(2, 1)], sentinels[:2])
    expect.same(targets.tolist(), [99, a + 2, 98], "the targets of one span are wrong", cause)
    inputs, targets = student.span_corruption(tokens, [], sentinels[:1])
    expect.same(inputs.tolist(), tokens.tolist(), "without spans the inputs change", cause)
    expect.same(targets.tolist(), [99], "without spans the targets are not the last sentinel", cause)


@pytest.mark.points(0)
def test_objectives_of_targets_at_their_edges(student):
    cause = "Does it hold where nothing is left to ask for, and where everything is?"
    tokens = torch.arange(10, 18).view(2, 4)
    everything, nothing = student.prefix_lm_targets(tokens, 0), student.prefix_lm_targets(tokens, 4)
    expect.same(everything.tolist(), tokens.tolist(), "with a prefix of 0 the targets are not the tokens", cause)
    expect.same(nothing.tolist(), [[IGNORED] * 4] * 2, "with a prefix of the whole text something is asked for", cause)
    for T, prefix in ((1, 0), (1, 1), (3, 3), (70, 65)):
        mask = student.prefix_lm_mask(T, prefix)
        expect.tensor(mask, (T, T), f"prefix_lm_mask({T}, {prefix})", torch.bool)
        right = [[s <= t or s < prefix for s in range(T)] for t in range(T)]
        expect.same(mask.tolist(), right, f"the mask for T = {T}, prefix = {prefix} is wrong", cause)
    for rate, noise in ((0.0, 0.0), (1.0, 0.999)):
        _, asked = student.masked_lm_corruption(tokens, torch.full((2, 4), noise), tokens + 100, 9, rate)
        expected = tokens.tolist() if rate else [[IGNORED] * 4] * 2
        expect.same(asked.tolist(), expected, f"at rate {rate:g} the targets are wrong", cause)


@pytest.mark.points(0)
def test_objectives_spans_of_a_long_text(student):
    tokens, sentinels = torch.arange(1_100), torch.arange(2_000, 2_021)
    spans = [(50 * i + 7, 3) for i in range(20)]
    outcome = student.span_corruption.run(tokens, spans, sentinels)
    inputs, targets = outcome.output
    cause = "Is nothing of a fixed length, and does each span have its own sentinel?"
    expect.tensor(inputs, (1_100 - 60 + 20,), "the inputs of 1,100 tokens and 20 spans", torch.int64)
    expect.tensor(targets, (60 + 21,), "the targets of 1,100 tokens and 20 spans", torch.int64)
    expect.same(targets[-5:].tolist(), [2_019, 957, 958, 959, 2_020], "the end of the targets is wrong", cause)
    expect.same(inputs.dtype, tokens.dtype, "the inputs have another dtype than the tokens", cause)
    for got, given in zip((outcome.inputs[0], outcome.inputs[2]), (tokens, sentinels), strict=True):
        expect.identical(got, given, "the caller's tensor was changed", "Do you write into tokens or sentinels?")
    expect.same(outcome.inputs[1], spans, "the caller's list of spans was changed", "Do you pop from it, or sort it?")


@pytest.mark.points(0)
def test_objectives_keep_their_inputs_and_torchs_settings(student):
    draw = Draw(446)
    logits, mask = draw.normal(2, 5, 7), torch.tensor([[True] * 5, [False] * 5])
    inputs = student.z_loss.run(logits, 0.5, mask, upstream=torch.tensor(1.0)).inputs
    for got, given in zip((inputs[0], inputs[2]), (logits, mask), strict=True):
        expect.identical(got, given, "the caller's tensor was changed", "Is there an operation in place?")
    tokens, noise = draw.tokens(2, 6, V=61), draw.uniform(2, 6)
    inputs = student.masked_lm_corruption.run(tokens, noise, tokens + 100, 9).inputs
    for got, given in zip(inputs[:3], (tokens, noise, tokens + 100), strict=True):
        expect.identical(got, given, "the caller's tensor was changed", "Do you write into tokens or noise?")
    leaves_torch_as_it_was(student, "objectives")
