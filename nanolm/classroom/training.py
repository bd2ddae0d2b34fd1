"""Tiny training runs: a few hundred steps on a CPU, on a text that ships with the course.

B batch, T query length, V vocabulary.
"""

import torch

from nanolm.classroom.small_text import TEXT


class Characters:
    """A text as numbers, a character a token: `tokens` (all of it), `V`, `encode`, `decode`."""

    def __init__(self, text=TEXT):
        self.letters = sorted(set(text))
        self.V = len(self.letters)
        self.tokens = self.encode(text)

    def encode(self, text):
        """Text -> tokens (T,)."""
        return torch.tensor([self.letters.index(letter) for letter in text])

    def decode(self, tokens):
        """Tokens (T,) -> text."""
        return "".join(self.letters[token] for token in tokens)


def batches(tokens, B, T, seed=0):
    """Endless random pieces (B, T) of tokens; the same seed, the same pieces."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        starts = torch.randint(len(tokens) - T + 1, (B, 1), generator=generator)
        yield tokens[starts + torch.arange(T)]


def next_token_loss(logits, tokens):
    """Mean cross entropy of the next token, logits (B, T, V) against tokens (B, T).

    Given, and plain: a notebook on the block runs before the objectives are written.
    """
    return torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


def train(model, tokens, steps, B=8, T=32, rate=3e-3, loss=next_token_loss, each_step=None, seed=0):
    """Train with AdamW at a constant rate on pieces of `tokens`; returns the loss of every step.

    `each_step(step, logits, batch)` sees each forward pass, before its update.
    """
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.95), weight_decay=0.0, fused=True)
    pieces, losses = batches(tokens, B, T, seed), []
    for step in range(steps):
        batch = next(pieces)
        logits = model(batch)
        value = loss(logits, batch)
        optimizer.zero_grad(set_to_none=True)
        value.backward()
        if each_step is not None:
            each_step(step, logits.detach(), batch)
        optimizer.step()
        losses.append(float(value.detach()))
    return losses
