"""What the model is trained to do: the losses, and what each objective asks of the same tokens.

B batch, T query length, V vocabulary. A target of ignore_index asks for nothing.

This file is yours to edit: replace every raise below a TODO, keep all names, arguments and __init__.
"""

import torch
from torch import Tensor


# Bonus exercise: causal_lm_loss
# What     cross entropy of the next token: position t predicts token t + 1
# Shapes   logits (B, T, V), tokens (B, T) -> one number
# Formula  mean of log Z - z[target] over the targets that count, log Z = logsumexp(z)
# Decided  the shift happens in here. A target equal to ignore_index does not count; where none
#          counts the loss is 0. At least fp32, whatever the logits are.
# Time     15 minutes, difficulty 2 of 5; our solution: 6 lines
# Check    pytest tests/test_objectives.py -k objectives_loss
def causal_lm_loss(logits: Tensor, tokens: Tensor, ignore_index: int = -100) -> Tensor:
    """Mean next-token cross entropy, a scalar of at least fp32.

    Source: Radford et al., GPT-2 (2019), section 2.
    """
    z = logits[:, :-1].to(torch.promote_types(logits.dtype, torch.float32))
    targets = tokens[:, 1:]
    counts = targets != ignore_index
    log_p = z - z.logsumexp(dim=-1, keepdim=True)
    wanted = log_p.gather(-1, torch.where(counts, targets, 0).unsqueeze(-1)).squeeze(-1)
    total = -torch.where(counts, wanted, 0.0).sum()
    return total / counts.sum().clamp(min=1)


# Bonus exercise: z_loss
# What     a penalty that keeps the softmax's normaliser Z near 1
# Shapes   logits (..., V), mask (...) bool or None -> one number
# Formula  coefficient * mean of (log Z)^2, log Z = logsumexp(z)
# Decided  mask True = the position counts; where none counts the loss is 0. At least fp32.
# Time     10 minutes, difficulty 1 of 5; our solution: 3 lines
# Check    pytest tests/test_objectives.py -k zloss
def z_loss(logits: Tensor, coefficient: float = 1e-4, mask: Tensor | None = None) -> Tensor:
    """coefficient * (log Z)^2, averaged over the positions that count, a scalar of at least fp32.

    Source: Chowdhery et al., PaLM (2022), section 5.
    """
    log_z = logits.to(torch.promote_types(logits.dtype, torch.float32)).logsumexp(dim=-1)
    if mask is not None:
        log_z = log_z[mask]
    return coefficient * log_z.square().sum() / max(log_z.numel(), 1)


# Bonus exercise: masked_lm_corruption
# What     BERT's task: pick 15% of the tokens; show 80% of those as [MASK], 10% as a random token
#          and 10% as they are; ask for the picked ones only
# Shapes   tokens, noise, random_tokens (B, T) -> inputs, targets (B, T)
# Formula  picked: noise < rate. Of these, noise < 0.8 rate shows mask_token, from there to 0.9 rate
#          random_tokens, from there the token itself
# Decided  noise is uniform in [0, 1) and given. Targets are ignore_index where not picked; no shift.
# Time     15 minutes, difficulty 2 of 5; our solution: 4 lines
# Check    pytest tests/test_objectives.py -k objectives_masked
def masked_lm_corruption(
    tokens: Tensor, noise: Tensor, random_tokens: Tensor, mask_token: int, rate: float = 0.15, ignore_index: int = -100
) -> tuple[Tensor, Tensor]:
    """Inputs and targets of masked language modelling, both (B, T).

    Source: Devlin et al., BERT (2018), section 3.1.
    """
    picked = noise < rate
    inputs = tokens.clone()
    shown_random = noise < 0.9 * rate
    inputs[shown_random] = random_tokens[shown_random]
    inputs[noise < 0.8 * rate] = mask_token
    return inputs, tokens.masked_fill(~picked, ignore_index)


# Bonus exercise: prefix_lm_mask
# What     the prefix reads itself in both directions, the rest reads everything before it
# Shapes   T -> (T, T) bool, True = may attend
# Formula  the causal mask, and nobody in the prefix is hidden
# Decided  T = 4, prefix 2:   x x . .
#                             x x . .
#                             x x x .
#                             x x x x
# Time     5 minutes, difficulty 1 of 5; our solution: 2 lines
# Check    pytest tests/test_objectives.py -k prefix
def prefix_lm_mask(T: int, prefix: int, device=None) -> Tensor:
    """(T, T) bool mask of a prefix LM, True where a query may attend.

    Source: Raffel et al., T5 (2020), section 3.2.1.
    """
    mask = torch.ones(T, T, dtype=torch.bool, device=device).tril()
    mask[:, :prefix] = True
    return mask


# Bonus exercise: prefix_lm_targets
# What     only the part after the prefix is asked for
# Shapes   tokens (B, T) -> targets (B, T)
# Formula  ignore_index for the first `prefix` entries, then the tokens
# Decided  not shifted: causal_lm_loss shifts.
# Time     5 minutes, difficulty 1 of 5; our solution: 3 lines
# Check    pytest tests/test_objectives.py -k prefix_targets
def prefix_lm_targets(tokens: Tensor, prefix: int, ignore_index: int = -100) -> Tensor:
    """Targets (B, T) of a prefix LM for causal_lm_loss; T - prefix of them count. tokens stay as they are.

    Source: Raffel et al., T5 (2020), section 3.2.1.
    """
    hidden = torch.arange(tokens.shape[1], device=tokens.device) < prefix
    return tokens.masked_fill(hidden, ignore_index)


# Bonus exercise: span_corruption
# What     T5's task: cut spans out, leave one sentinel for each, write the spans as the answer
# Shapes   tokens (T,), spans a list of (start, length), sentinels (len(spans) + 1,) -> inputs, targets
# Formula  tokens a b c d e, span (1, 2), sentinels X Y -> inputs a X d e, targets X b c Y
# Decided  spans are sorted and don't touch. The answer names each sentinel before its span and ends
#          with the last sentinel.
# Time     15 minutes, difficulty 2 of 5; our solution: 8 lines
# Check    pytest tests/test_objectives.py -k spans
def span_corruption(tokens: Tensor, spans: list[tuple[int, int]], sentinels: Tensor) -> tuple[Tensor, Tensor]:
    """Inputs and targets of span corruption, two vectors of tokens.

    Source: Raffel et al., T5 (2020), section 3.1.4 and figure 2.
    """
    words, marks = tokens.tolist(), sentinels.tolist()
    inputs, targets, at = [], [], 0
    for (start, length), mark in zip(spans, marks, strict=False):
        inputs += words[at:start] + [mark]
        targets += [mark] + words[start : start + length]
        at = start + length
    inputs += words[at:]
    targets += marks[len(spans) : len(spans) + 1]
    return tokens.new_tensor(inputs), tokens.new_tensor(targets)
