"""What flows through a language model: the stream by depth, gradients by depth, attention by head.

L layers, B batch, T query length, D width, N query heads, K key/value heads, H head size.
"""

import torch

from nanolm.classroom.training import next_token_loss


@torch.no_grad()
def streams(model, tokens):
    """The residual stream before the first block and after each: (L + 1, B, T, D)."""
    seen = []
    blocks = model.blocks
    hooks = [blocks[0].register_forward_pre_hook(lambda block, inputs: seen.append(inputs[0].clone()))]
    hooks += [block.register_forward_hook(lambda block, inputs, out: seen.append(out.clone())) for block in blocks]
    try:
        model(tokens)
    finally:
        for hook in hooks:
            hook.remove()
    return torch.stack(seen)


def gradient_norms(model, tokens, loss=next_token_loss):
    """The norm of the loss's gradient in each layer's weights: a list of L numbers."""
    model.zero_grad(set_to_none=True)
    loss(model(tokens), tokens).backward()
    norms = []
    for block in model.blocks:
        squares = [p.grad.pow(2).sum() for p in block.parameters() if p.grad is not None]
        norms.append(float(torch.stack(squares).sum().sqrt()))
    model.zero_grad(set_to_none=True)
    return norms


@torch.no_grad()
def attention_weights(model, tokens, layer):
    """Who attends to whom in one layer: (B, N, T, T), read off its weights with the implementation's parts.

    For models without QK-norm, soft-cap and windows.
    """
    cfg, impl, block = model.cfg, model.impl, model.blocks[layer]
    (B, T), weights = tokens.shape, block.attn.state_dict()
    x = block.attn_norm(streams(model, tokens)[layer])  # (B, T, D)
    q = (x @ weights["w_q.weight"].T).view(B, T, cfg.N, cfg.H).transpose(1, 2)  # (B, N, T, H)
    k = (x @ weights["w_k.weight"].T).view(B, T, cfg.K, cfg.H).transpose(1, 2)  # (B, K, T, H)
    cos, sin = impl.rope_cos_sin(torch.arange(T), impl.rope_frequencies(cfg.H, cfg.rope_theta))
    q, k = impl.apply_rope(q, cos, sin), impl.repeat_kv(impl.apply_rope(k, cos, sin), cfg.G)
    scores = q @ k.transpose(-2, -1) * cfg.H**-0.5  # (B, N, T, T)
    return scores.masked_fill(~impl.causal_mask(T, T), -torch.inf).softmax(dim=-1)
