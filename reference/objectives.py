"""What the model is trained to do: the losses, and what each objective asks of the same tokens.

B batch, T query length, V vocabulary. A target of ignore_index asks for nothing.
"""

import torch
from torch import Tensor


# exercise: causal_lm_loss (bonus)
# What     cross entropy of the next token: position t predicts token t + 1
# Shapes   logits (B, T, V), tokens (B, T) -> one number
# Formula  mean of log Z - z[target] over the targets that count, log Z = logsumexp(z)
# Decided  the shift happens in here. A target equal to ignore_index does not count; where none
#          counts the loss is 0. At least fp32, whatever the logits are.
# Time     15 minutes, difficulty 2 of 5
def causal_lm_loss(logits: Tensor, tokens: Tensor, ignore_index: int = -100) -> Tensor:
    """Mean next-token cross entropy, a scalar of at least fp32.

    Source: Radford et al., GPT-2 (2019), section 2.
    """
    # solution: mean cross entropy of the next token
    logits = logits[:, :-1].to(torch.promote_types(logits.dtype, torch.float32))  # (B, T - 1, V)
    targets = tokens[:, 1:]  # (B, T - 1)
    total = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), targets.flatten(), ignore_index=ignore_index, reduction="sum"
    )
    return total / (targets != ignore_index).sum().clamp(min=1)
    # end


# exercise: z_loss (bonus)
# What     a penalty that keeps the softmax's normaliser Z near 1
# Shapes   logits (..., V), mask (...) bool or None -> one number
# Formula  coefficient * mean of (log Z)^2, log Z = logsumexp(z)
# Decided  mask True = the position counts; where none counts the loss is 0. At least fp32.
# Time     10 minutes, difficulty 1 of 5
def z_loss(logits: Tensor, coefficient: float = 1e-4, mask: Tensor | None = None) -> Tensor:
    """coefficient * (log Z)^2, averaged over the positions that count, a scalar of at least fp32.

    Source: Chowdhery et al., PaLM (2022), section 5.
    """
    # solution: mean squared log Z, times the coefficient
    log_z = torch.logsumexp(logits.to(torch.promote_types(logits.dtype, torch.float32)), dim=-1)
    counts = torch.ones_like(log_z) if mask is None else mask.to(log_z.dtype)
    return coefficient * (log_z.pow(2) * counts).sum() / counts.sum().clamp(min=1)
    # end


# exercise: masked_lm_corruption (bonus)
# What     BERT's task: pick 15% of the tokens; show 80% of those as [MASK], 10% as a random token
#          and 10% as they are; ask for the picked ones only
# Shapes   tokens, noise, random_tokens (B, T) -> inputs, targets (B, T)
# Formula  picked: noise < rate. Of these, noise < 0.8 rate shows mask_token, from there to 0.9 rate
#          random_tokens, from there the token itself
# Decided  noise is uniform in [0, 1) and given. Targets are ignore_index where not picked; no shift.
# Time     15 minutes, difficulty 2 of 5
def masked_lm_corruption(
    tokens: Tensor, noise: Tensor, random_tokens: Tensor, mask_token: int, rate: float = 0.15, ignore_index: int = -100
) -> tuple[Tensor, Tensor]:
    """Inputs and targets of masked language modelling, both (B, T).

    Source: Devlin et al., BERT (2018), section 3.1.
    """
    # solution: what is shown, what is asked
    inputs = torch.where(noise < 0.9 * rate, random_tokens, tokens)
    inputs = torch.where(noise < 0.8 * rate, mask_token, inputs)
    targets = torch.where(noise < rate, tokens, ignore_index)
    return inputs, targets
    # end


# exercise: prefix_lm_mask (bonus)
# What     the prefix reads itself in both directions, the rest reads everything before it
# Shapes   T -> (T, T) bool, True = may attend
# Formula  the causal mask, and nobody in the prefix is hidden
# Decided  T = 4, prefix 2:   x x . .
#                             x x . .
#                             x x x .
#                             x x x x
# Time     5 minutes, difficulty 1 of 5
def prefix_lm_mask(T: int, prefix: int, device=None) -> Tensor:
    """(T, T) bool mask of a prefix LM, True where a query may attend.

    Source: Raffel et al., T5 (2020), section 3.2.1.
    """
    # solution: who may attend to whom
    key = torch.arange(T, device=device)
    return (key <= key.unsqueeze(1)) | (key < prefix)  # (T, T)
    # end


# exercise: prefix_lm_targets (bonus)
# What     only the part after the prefix is asked for
# Shapes   tokens (B, T) -> targets (B, T)
# Formula  ignore_index for the first `prefix` entries, then the tokens
# Decided  not shifted: causal_lm_loss shifts.
# Time     5 minutes, difficulty 1 of 5
def prefix_lm_targets(tokens: Tensor, prefix: int, ignore_index: int = -100) -> Tensor:
    """Targets (B, T) of a prefix LM for causal_lm_loss; T - prefix of them count. tokens stay as they are.

    Source: Raffel et al., T5 (2020), section 3.2.1.
    """
    # solution: ask only for what follows the prefix
    targets = tokens.clone()
    targets[:, :prefix] = ignore_index
    return targets
    # end


# exercise: span_corruption (bonus)
# What     T5's task: cut spans out, leave one sentinel for each, write the spans as the answer
# Shapes   tokens (T,), spans a list of (start, length), sentinels (len(spans) + 1,) -> inputs, targets
# Formula  tokens a b c d e, span (1, 2), sentinels X Y -> inputs a X d e, targets X b c Y
# Decided  spans are sorted and don't touch. The answer names each sentinel before its span and ends
#          with the last sentinel.
# Time     15 minutes, difficulty 2 of 5
def span_corruption(tokens: Tensor, spans: list[tuple[int, int]], sentinels: Tensor) -> tuple[Tensor, Tensor]:
    """Inputs and targets of span corruption, two vectors of tokens.

    Source: Raffel et al., T5 (2020), section 3.1.4 and figure 2.
    """
    # solution: cut the spans out, write the answer
    inputs, targets, end = [], [], 0
    for i, (start, length) in enumerate(spans):
        inputs += [tokens[end:start], sentinels[i : i + 1]]
        targets += [sentinels[i : i + 1], tokens[start : start + length]]
        end = start + length
    inputs.append(tokens[end:])
    targets.append(sentinels[len(spans) : len(spans) + 1])
    return torch.cat(inputs), torch.cat(targets)
    # end
