"""The parts of the week: which exercise belongs to which, and what each part is made of."""

# In the order of the week.
CORE = ("rmsnorm", "swiglu", "rope", "attention", "block", "budget", "logits")
DEPTH = ("backward", "qknorm", "softcap", "window", "cache", "recipe", "objectives")
PARTS = CORE + DEPTH

FILES = (
    "test_modules.py",
    "test_budget.py",
    "test_rope.py",
    "test_attention.py",
    "test_block.py",
    "test_depth.py",
    "test_objectives.py",
    "test_logits.py",
    "test_timing_cuda.py",
)

# A part's tests need the parts that it is made of.
MADE_OF = {
    "attention": ("rope",),
    "block": ("rmsnorm", "swiglu", "rope", "attention"),
    "logits": ("rmsnorm", "swiglu", "rope", "attention", "block"),
    "backward": ("rmsnorm",),
    "qknorm": ("rmsnorm", "rope", "attention"),
    "softcap": ("rope", "attention"),
    "window": ("rope", "attention"),
    "cache": ("rmsnorm", "swiglu", "rope", "attention", "block"),
    "recipe": ("rmsnorm", "swiglu", "rope", "attention", "block", "budget"),
}

EXERCISE_PART = {
    "RMSNorm": "rmsnorm",
    "SwiGLU": "swiglu",
    "ffn_dim": "swiglu",
    "rope_frequencies": "rope",
    "rope_cos_sin": "rope",
    "apply_rope": "rope",
    "repeat_kv": "attention",
    "causal_mask": "attention",
    "GroupedQueryAttention": "attention",
    "softcap": "softcap",
    "Block": "block",
    "count_parameters": "budget",
    "kv_cache_bytes_per_token": "budget",
    "rmsnorm_backward": "backward",
}  # all others: objectives


def part_of_test(name):
    """test_rope_preserves_norm -> rope."""
    prefix = name.removeprefix("test_").split("_")[0]
    if prefix not in PARTS:
        raise ValueError(f"{name}: a test's name begins with its part, one of {', '.join(PARTS)}.")
    return prefix


def part_of_exercise(name):
    """GroupedQueryAttention.forward -> attention."""
    return EXERCISE_PART.get(name.split(".")[0], "objectives")


# The files of the implementation that a test file asks.
ASKS = {
    "test_modules.py": ("modules",),
    "test_budget.py": ("modules", "budget"),
    "test_rope.py": ("rope",),
    "test_attention.py": ("modules", "rope", "attention"),
    "test_block.py": ("modules", "rope", "attention", "model"),
    "test_depth.py": ("modules", "rope", "attention", "model", "budget"),
    "test_objectives.py": ("objectives",),
    "test_logits.py": ("modules", "rope", "attention", "model"),
}
