"""The language model around the reference, against Hugging Face's Llama with the same shape and weights.

B batch, T query length.
"""

import torch

from grading.proof.bench.ratio import in_turn
from nanolm.cache import Cache
from nanolm.config import preset

T, PROMPT, NEW = 128, 64, 16
CLOSE = 1e-2  # of the largest logit: more says that the two do not compute the same


def ratios(runs, cfg=None, T=T, PROMPT=PROMPT, NEW=NEW):
    """One forward, and greedy decoding with a cache, in the shape of SmolLM2-135M."""
    from grading.proof.hf_twins import our_model, our_state, twin  # imports transformers, seconds long

    cfg = cfg or preset("smollm2-135m")
    theirs = twin(cfg, "llama")
    ours = our_model(cfg, our_state(theirs, cfg, "llama"))
    theirs.set_attn_implementation("sdpa")
    torch.set_num_threads(1)  # threads that wait for each other would measure who else is working
    tokens = torch.randint(cfg.V, (1, T), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        _same(ours(tokens), theirs(tokens).logits)
        yield in_turn(
            "a forward", runs, (f"ours, B = 1, T = {T}", lambda: ours(tokens)),
            ("transformers' Llama", lambda: theirs(tokens)),
        )  # fmt: skip
        prompt = tokens[:, :PROMPT]
        yield in_turn(
            "cached decoding", runs, (f"ours, {NEW} tokens after {PROMPT}", lambda: _ours_decodes(ours, prompt, NEW)),
            ("transformers' Llama", lambda: _theirs_decodes(theirs, prompt, NEW)),
        )  # fmt: skip


def _same(ours, theirs):
    off = float((ours - theirs).abs().max() / theirs.abs().max())
    if off > CLOSE:
        raise SystemExit(f"the two models differ by {off:.1%} of the largest logit: their times can't be compared")


def _ours_decodes(model, tokens, count):
    cache = Cache(model.cfg)
    for _ in range(count):
        tokens = model(tokens, cache)[:, -1:].argmax(dim=-1)
    return tokens


def _theirs_decodes(model, tokens, count):
    from transformers import DynamicCache

    cache = DynamicCache(config=model.config)
    for _ in range(count):
        tokens = model(tokens, cache=cache, use_cache=True).logits[:, -1:].argmax(dim=-1)
    return tokens
