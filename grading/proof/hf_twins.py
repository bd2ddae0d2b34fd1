"""Hugging Face twins of our models: the same configuration and the same random weights on both sides.

B batch, T query length, D width, F FFN width, H head size, N query heads, K key/value heads.
"""

import pytest
import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from nanolm.impl import load
from nanolm.model import LanguageModel
from nanolm.model.weights import build_model, halves_to_neighbours

transformers = pytest.importorskip("transformers", reason="needs the outside judge: pip install transformers")

FP32_TOLERANCE = 1e-4  # right code differs by up to 2.3e-5 here, on logits from 13 to 35
FP64_TOLERANCE = 1e-9


class KeepDouble(TorchFunctionMode):
    """Hugging Face's code run inside stays in fp64 where it would drop to fp32 (norms, softmax, angles)."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if args and isinstance(args[0], torch.Tensor) and args[0].dtype == torch.float64:
            if function is torch.Tensor.float:
                return args[0]
            args = tuple(torch.float64 if arg is torch.float32 else arg for arg in args)
            if kwargs.get("dtype") is torch.float32:
                kwargs["dtype"] = torch.float64
        return function(*args, **kwargs)


def twin(cfg, family):
    """Hugging Face's model of `family` for our cfg, with random gains, biases and scaled-up weights."""
    config = FAMILIES[family](cfg)
    config._attn_implementation = "eager"  # the fused path leaves out Gemma's caps
    hf = transformers.AutoModelForCausalLM.from_config(config).eval()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, parameter in hf.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if _is_gain(name):
                gain = 0.5 + noise  # some near 0, some negative
                parameter.copy_(gain - 1 if family == "gemma2" else gain)
            elif "embed" in name or "wte" in name or "wpe" in name:
                parameter.copy_(noise)
            else:  # weights near 0 would leave attention uniform, larger ones make fp32 itself noisy
                parameter.copy_((0.6 if "lm_head" in name else 0.2) * noise)
    return hf


def our_state(hf, cfg, family, reorder=halves_to_neighbours):
    """The twin's weights under our names, the rows of q and k as neighbours."""
    state = {name: tensor.clone() for name, tensor in hf.state_dict().items()}
    return _from_gpt(state, cfg) if family.startswith("gpt") else _from_llama(state, cfg, family, reorder)


def our_model(cfg, state):
    """The reference's language model with these weights; GPT-1 has no final norm to give one."""
    impl = load("reference")
    if "norm.weight" in state:
        return build_model(cfg, state, impl)
    model = LanguageModel(cfg, impl)
    model.norm = nn.Identity()
    model.load_state_dict(state)
    return model


def random_tokens(cfg, T=23, B=2):
    """Tokens (B, T): several windows long, token 0 among them."""
    tokens = torch.randint(cfg.V, (B, T), generator=torch.Generator().manual_seed(1))
    tokens[0, 1] = 0
    return tokens


@torch.no_grad()
def both_logits(cfg, family, tokens, double=False):
    """Logits (B, T, V) of ours and theirs in fp32, or in true fp64 with the same angles."""
    hf = twin(cfg, family)
    if not double:
        return our_model(cfg, our_state(hf, cfg, family))(tokens), hf(tokens).logits
    hf.double()
    ours = our_model(cfg, our_state(hf, cfg, family)).double()
    frequencies = None if family.startswith("gpt") else hf.model.rotary_emb.inv_freq
    with KeepDouble():
        theirs = hf(tokens).logits
    return ours(tokens, frequencies=frequencies), theirs


def difference(a, b):
    """The largest absolute difference, a float."""
    return float((a - b).abs().max())


def _is_gain(name):
    return name.endswith("weight") and ("norm" in name or "ln_" in name)


def _shared(cfg):
    return {
        "vocab_size": cfg.V,
        "hidden_size": cfg.D,
        "intermediate_size": cfg.F,
        "num_hidden_layers": cfg.L,
        "num_attention_heads": cfg.N,
        "num_key_value_heads": cfg.K,
        "head_dim": cfg.H,
        "max_position_embeddings": cfg.T_max,
        "rms_norm_eps": cfg.norm_eps,
        "rope_parameters": {"rope_type": "default", "rope_theta": cfg.rope_theta},
        "tie_word_embeddings": cfg.tie_embeddings,
        "pad_token_id": None,
        "bos_token_id": None,
        "eos_token_id": None,
    }


def _llama(cfg):
    return transformers.LlamaConfig(**_shared(cfg), attention_bias=cfg.bias)


def _mistral(cfg):
    return transformers.MistralConfig(**_shared(cfg), sliding_window=cfg.windows)


def _qwen3(cfg):
    return transformers.Qwen3Config(**_shared(cfg))


def _gemma2(cfg):  # which layers have a window, and the embedding's scale, are Hugging Face's to say
    return transformers.Gemma2Config(
        **_shared(cfg),
        query_pre_attn_scalar=cfg.H,
        attn_logit_softcapping=cfg.attn_softcap,
        final_logit_softcapping=cfg.final_softcap,
        sliding_window=cfg.window_of(0),
    )


def _gpt2(cfg):
    return transformers.GPT2Config(**_gpt_sizes(cfg), n_inner=cfg.F)


def _gpt1(cfg):
    return transformers.OpenAIGPTConfig(**_gpt_sizes(cfg))  # its F is 4 * D always


def _gpt_sizes(cfg):
    return {
        "vocab_size": cfg.V,
        "n_positions": cfg.T_max,
        "n_embd": cfg.D,
        "n_layer": cfg.L,
        "n_head": cfg.N,
        "layer_norm_epsilon": cfg.norm_eps,
        "tie_word_embeddings": cfg.tie_embeddings,
        "bos_token_id": None,
        "eos_token_id": None,
    }


FAMILIES = {
    "llama": _llama,
    "mistral": _mistral,
    "qwen3": _qwen3,
    "gemma2": _gemma2,
    "gpt2": _gpt2,
    "gpt1": _gpt1,
}

LLAMA_NAMES = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn.w_q",
    "self_attn.k_proj": "attn.w_k",
    "self_attn.v_proj": "attn.w_v",
    "self_attn.o_proj": "attn.w_o",
    "self_attn.q_norm": "attn.q_norm",
    "self_attn.k_norm": "attn.k_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn.w_gate",
    "mlp.up_proj": "ffn.w_up",
    "mlp.down_proj": "ffn.w_down",
}
GEMMA2_NAMES = LLAMA_NAMES | {  # the name of Llama's second norm is here that of the attention's output norm
    "post_attention_layernorm": "attn_out_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "ffn_out_norm",
}
TURNED = ("attn.w_q", "attn.w_k", "attn.q_norm", "attn.k_norm")


def _from_llama(state, cfg, family, reorder):
    names = GEMMA2_NAMES if family == "gemma2" else LLAMA_NAMES
    ours = {"embed.weight": state["model.embed_tokens.weight"], "norm.weight": state["model.norm.weight"]}
    if not cfg.tie_embeddings:
        ours["head.weight"] = state["lm_head.weight"]
    for name, tensor in state.items():
        if name.startswith("model.layers."):
            layer, rest = name.removeprefix("model.layers.").split(".", 1)  # 0, self_attn.q_proj.weight
            part, kind = rest.rsplit(".", 1)
            part = names[part]
            ours[f"blocks.{layer}.{part}.{kind}"] = reorder(tensor, cfg.H) if part in TURNED else tensor
    if family == "gemma2":  # its gain is 1 + w
        ours = {name: tensor + 1 if "norm" in name else tensor for name, tensor in ours.items()}
    return ours


GPT_NAMES = {"ln_1": "attn_norm", "attn.c_proj": "attn.w_o", "ln_2": "ffn_norm"}
GPT_NAMES |= {"mlp.c_fc": "ffn.w_in", "mlp.c_proj": "ffn.w_out"}
GPT_TOP_NAMES = {
    "wte.weight": "embed.weight",
    "wpe.weight": "positions.weight",
    "tokens_embed.weight": "embed.weight",
    "positions_embed.weight": "positions.weight",
    "ln_f.weight": "norm.weight",
    "ln_f.bias": "norm.bias",
}


def _from_gpt(state, cfg):
    ours = {} if cfg.tie_embeddings else {"head.weight": state["lm_head.weight"]}
    for name, tensor in state.items():
        name = name.removeprefix("transformer.")
        if name in GPT_TOP_NAMES:
            ours[GPT_TOP_NAMES[name]] = tensor
        elif name.startswith("h."):
            layer, rest = name.removeprefix("h.").split(".", 1)  # 0, attn.c_attn.weight
            part, kind = rest.rsplit(".", 1)
            if "c_" in part and kind == "weight":
                tensor = tensor.T  # theirs is (input, output), a linear layer's is (output, input)
            if part == "attn.c_attn":  # q, k and v in one: (3 * D, ...)
                for ours_part, rows in zip(("w_q", "w_k", "w_v"), tensor.chunk(3), strict=True):
                    ours[f"blocks.{layer}.attn.{ours_part}.{kind}"] = rows.contiguous()
            else:
                ours[f"blocks.{layer}.{GPT_NAMES[part]}.{kind}"] = tensor.contiguous()
    return ours
