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
    """Who attends to whom in one layer: (B, N, T, T), read through the implementation's own attention.

    It gets a wider token: x as it is, and beside it which token this is. Queries and keys see x, values only
    the place, so that token j's value is the j-th unit vector, and what a head mixes of them are its weights.
    """
    cfg, impl, block = model.cfg, model.impl, model.blocks[layer]
    (B, T), held = tokens.shape, block.attn.state_dict()
    wide = cfg.but(D=max(cfg.D, cfg.N * cfg.H) + T, H=cfg.H)
    x = block.attn_norm(streams(model, tokens)[layer])  # (B, T, D)
    x = torch.cat((x, x.new_zeros(B, T, wide.D - cfg.D - T), torch.eye(T).expand(B, T, T)), dim=-1)
    for name in ("w_q.weight", "w_k.weight"):
        held[name] = torch.nn.functional.pad(held[name], (0, wide.D - cfg.D))
    held["w_o.weight"] = torch.eye(wide.D, cfg.N * cfg.H)  # what the heads have mixed comes out as it is
    if cfg.bias:
        held |= {"w_v.bias": torch.zeros(cfg.K * cfg.H), "w_o.bias": torch.zeros(wide.D)}
    attention = impl.GroupedQueryAttention(wide, layer)
    tables = impl.rope_cos_sin(torch.arange(T), impl.rope_frequencies(cfg.H, cfg.rope_theta))
    seen = []
    for first in range(0, T, cfg.H):  # a head has room for H places at a time
        places = torch.arange(min(cfg.H, T - first))
        held["w_v.weight"] = torch.zeros(cfg.K * cfg.H, wide.D)
        held["w_v.weight"].view(cfg.K, cfg.H, wide.D)[:, places, wide.D - T + first + places] = 1.0
        attention.load_state_dict(held, strict=False)
        seen.append(attention(x, *tables)[..., : cfg.N * cfg.H].view(B, T, cfg.N, cfg.H)[..., : len(places)])
    return torch.cat(seen, dim=-1).transpose(1, 2)
