"""Budgets: what a configuration costs, before anybody builds it.

L layers, V vocabulary, D width, F FFN width, N query heads, K key/value heads, H head size.
"""

from nanolm.config import ModelConfig


# exercise: count_parameters
# What     count every number that training sets: embedding, blocks, final norm, head
# Shapes   cfg -> int
# Formula  a layer of the modern block is attention + FFN + two norms; say how many matrices each
#          has, and of which shape. Llama 3 8B comes to 8,030,261,248 exactly.
# Decided  a tied head costs nothing (the embedding is counted once). RoPE has no parameters.
#          cfg.qk_norm adds two gains of H a layer. The 2019 parts (cfg.norm "layernorm",
#          cfg.ffn "gelu", cfg.positions "learned", cfg.bias) are a bonus, and so is a sandwich.
# Time     20 minutes, difficulty 2 of 5
def count_parameters(cfg: ModelConfig) -> int:
    """The number of parameters of the language model that `cfg` describes, as an int.

    Source: The Llama 3 Herd of Models (2024), table 3, for the sizes.
    """
    # solution: count every parameter once
    attention = 2 * cfg.D * cfg.N * cfg.H + 2 * cfg.D * cfg.K * cfg.H  # w_q and w_o, w_k and w_v
    ffn = (2 if cfg.ffn == "gelu" else 3) * cfg.D * cfg.F  # a gated FFN has a third matrix
    norm = cfg.D
    if cfg.bias:
        attention += cfg.N * cfg.H + 2 * cfg.K * cfg.H + cfg.D
        ffn += cfg.F + cfg.D if cfg.ffn == "gelu" else 0
        norm += cfg.D if cfg.norm == "layernorm" else 0
    if cfg.qk_norm:
        attention += 2 * cfg.H
    norms = 4 if cfg.norm_position == "sandwich" else 2
    layer = attention + ffn + norms * norm

    embedding = cfg.V * cfg.D
    positions = cfg.T_max * cfg.D if cfg.positions == "learned" else 0
    head = 0 if cfg.tie_embeddings else cfg.V * cfg.D
    return embedding + positions + cfg.L * layer + norm + head
    # end


# exercise: kv_cache_bytes_per_token
# What     bytes that generation keeps for one token of one sequence, all layers together
# Shapes   cfg -> int
# Formula  2 * L * K * H * bytes, the 2 for keys and values
# Decided  K heads, not N: that is the point of GQA. Windows don't matter: this is the growth per
#          token while the context is shorter than every window.
# Time     5 minutes, difficulty 1 of 5
def kv_cache_bytes_per_token(cfg: ModelConfig, bytes_per_element: int = 2) -> int:
    """Bytes of key/value cache per token and sequence, as an int; 2 bytes are bf16 or fp16.

    Source: Ainslie et al., GQA (2023), section 2.
    """
    # solution: bytes for one token
    return 2 * cfg.L * cfg.K * cfg.H * bytes_per_element
    # end
