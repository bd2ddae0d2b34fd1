"""The language model around the active Block: embed, blocks, final norm, head.

B batch, T query length, V vocabulary, D width, H head size.
"""

import torch
from torch import nn

from nanolm.cache import Cache
from nanolm.model.given_parts import make_block, make_norm


class LanguageModel(nn.Module):
    """tokens (B, T) -> logits (B, T, V), built from the parts of one implementation.

    State dict: `embed.weight`, `positions.weight` (learned positions only), `blocks.{i}.<block names>`,
    `norm.weight`, `head.weight` (absent when tied).
    """

    def __init__(self, cfg, impl):
        super().__init__()
        self.cfg, self.impl = cfg, impl
        self._frequencies = {}  # device -> RoPE's own, so that no forward has to move them there
        self.embed = nn.Embedding(cfg.V, cfg.D)
        nn.init.normal_(self.embed.weight, std=0.02)
        if cfg.positions == "learned":
            self.positions = nn.Embedding(cfg.T_max, cfg.D)
            nn.init.normal_(self.positions.weight, std=0.02)
        self.blocks = nn.ModuleList(make_block(cfg, layer, impl) for layer in range(cfg.L))
        self.norm = make_norm(cfg, impl)
        if not cfg.tie_embeddings:
            self.head = nn.Linear(cfg.D, cfg.V, bias=False)
            nn.init.normal_(self.head.weight, std=0.02)

    def forward(self, tokens, cache=None, positions=None, frequencies=None):
        """tokens (B, T) -> logits (B, T, V).

        With a cache, `tokens` are the new ones and their positions continue. `positions` (T,) or
        (B, T) replaces the count; `frequencies` (H/2,) replaces RoPE's own (NTK, YaRN, Llama 3.1).
        """
        cfg, T = self.cfg, tokens.shape[-1]
        if positions is None:
            start = 0 if cache is None else cache.length
            positions = torch.arange(start, start + T, device=tokens.device)
        x = self.embed(tokens)  # (B, T, D)
        if cfg.embed_scale != 1.0:
            x = x * torch.full((), cfg.embed_scale, dtype=x.dtype, device=x.device)  # rounded first, as Gemma does
        if cfg.positions == "learned":
            self._check_table(positions)
            x = x + self.positions(positions)
        cos, sin = self._cos_sin(positions, frequencies)  # once a forward, not once a layer
        for layer, block in enumerate(self.blocks):
            x = block(x, cos, sin, None if cache is None else cache[layer])
        x = self.norm(x)
        logits = torch.nn.functional.linear(x, self.embed.weight if cfg.tie_embeddings else self.head.weight)
        return logits if cfg.final_softcap is None else self.impl.softcap(logits, cfg.final_softcap)

    def _cos_sin(self, positions, frequencies):
        if self.cfg.positions == "learned":  # no turn: every angle is 0
            zeros = torch.zeros(*positions.shape, self.cfg.H // 2, device=positions.device)
            cos, sin = zeros + 1, zeros
        else:
            if frequencies is None:
                frequencies = self._own_frequencies(positions.device)
            cos, sin = self.impl.rope_cos_sin(positions, frequencies)
        if positions.dim() == 2:  # rows of their own positions: (B, T, H/2) -> (B, 1, T, H/2)
            cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
        return cos, sin

    def _own_frequencies(self, device):
        if device not in self._frequencies:
            self._frequencies[device] = self.impl.rope_frequencies(self.cfg.H, self.cfg.rope_theta).to(device)
        return self._frequencies[device]

    def _check_table(self, positions):
        if positions.device.type != "meta" and int(positions.max()) >= self.cfg.T_max:
            raise ValueError(
                f"position {int(positions.max())} has no row in a learned table of T_max = {self.cfg.T_max}: "
                f"shorten the text, or use RoPE."
            )

    @torch.no_grad()
    def generate(self, tokens, count, temperature=0.0, generator=None, stop=()):
        """Yield up to `count` new tokens after tokens (T,); greedy at temperature 0, else sampled.

        An attention that leaves the cache empty gets the whole prefix again at every step.
        Raises ValueError for an empty prompt, a token outside the vocabulary or a negative temperature.
        """
        self._check_prompt(tokens, temperature)
        cache = Cache(self.cfg)
        logits = self(tokens[None], cache)[0, -1]  # (V,)
        cached = cache.length == len(tokens)
        for step in range(count):
            token = _choose(logits, temperature, generator)
            yield int(token)
            if int(token) in stop or step == count - 1:
                return
            tokens = torch.cat((tokens, token.view(1)))
            logits = (self(token.view(1, 1), cache) if cached else self(tokens[None]))[0, -1]

    def _check_prompt(self, tokens, temperature):
        if len(tokens) == 0:
            raise ValueError("the prompt is empty: give at least one token to continue from.")
        if int(tokens.min()) < 0 or int(tokens.max()) >= self.cfg.V:
            raise ValueError(f"a token lies outside the vocabulary of V = {self.cfg.V}: check the tokenizer.")
        if temperature < 0:
            raise ValueError(f"temperature = {temperature} must not be negative: 0 is greedy.")


def _choose(logits, temperature, generator):
    if temperature == 0:
        return logits.argmax(dim=-1)
    above = logits.double() - logits.double().amax(dim=-1, keepdim=True)  # 0 at the likeliest, whatever we divide by
    probabilities = torch.softmax((above / temperature).float(), dim=-1)
    return torch.multinomial(probabilities, 1, generator=generator).squeeze(-1)
