"""The parts of the week: which exercise belongs to which, and what each part is made of."""

# In the order of the week.
CORE = ("rmsnorm", "swiglu", "rope", "attention", "block", "budget", "logits")
DEPTH = ("backward", "qknorm", "softcap", "window", "cache", "recipe", "objectives")
PARTS = CORE + DEPTH
ADVICE = ("memory", "timing")  # right code may be slow: a red answer of these is advice, and no part waits for it

FILES = (
    "test_rmsnorm.py",
    "test_swiglu.py",
    "test_budget.py",
    "test_rope.py",
    "test_attention.py",
    "test_block.py",
    "test_backward.py",
    "test_qknorm.py",
    "test_softcap.py",
    "test_window.py",
    "test_cache.py",
    "test_recipe.py",
    "test_objectives.py",
    "test_logits.py",
    "test_memory.py",
    "test_timing_cuda.py",
)

# What a test asks is made of these parts: where one of them is not right, the test waits for it.
MADE_OF = {
    "RMSNorm": ("rmsnorm",),
    "causal_mask": ("attention",),  # the window's tests wait for the plain mask
    "GroupedQueryAttention": ("rope", "attention"),
    "Block": ("rmsnorm", "swiglu", "rope", "attention", "block"),
    "LanguageModel": ("rmsnorm", "swiglu", "rope", "attention", "block"),
}

# Tests hand over cos = 1, sin = 0 wherever they can, so a wrong angle disturbs nobody. Such a test
# waits for rope only if one of these is red; a test marked needs("rope") waits for all of rope's.
ROPE_AT_REST = (
    "test_rope_returns_the_shape_of_its_input",
    "test_rope_leaves_position_zero_as_it_is",
    "test_rope_rotates_along_time_not_heads",
    "test_rope_broadcasts_tables_by_row",
    "test_rope_preserves_dtype",
    "test_rope_does_not_modify_its_input",
    "test_rope_accepts_any_rank",
    "test_rope_accepts_axes_of_one",
    "test_rope_accepts_strided_input",
    "test_rope_lets_the_gradient_through",
    "test_rope_follows_its_device",
    "test_rope_is_the_same_with_gradients",
    "test_rope_has_no_longest_text",
    "test_rope_tells_axes_of_equal_size_apart",
    "test_rope_takes_tables_of_another_dtype",
    "test_rope_keeps_no_table_of_another_dtype_or_device",
    "test_rope_takes_values_of_any_size",
)

# A detail of an ingredient makes only those tests wait that ask for it too: kind -> (words by which a test's name says
# that it asks for it, tests of ingredients that ask for nothing else).
DETAILS = {
    "dtype": (
        ("bf16", "bfloat16", "fp64", "double", "dtype"),
        (
            "test_rmsnorm_fp16_does_not_overflow",
            "test_rmsnorm_computes_in_fp32",
            "test_rmsnorm_preserves_dtype",
            "test_rmsnorm_runs_in_fp64",
            "test_rmsnorm_takes_a_gain_of_any_dtype",
            "test_swiglu_runs_in_bf16",
            "test_swiglu_keeps_fp64",
            "test_rope_preserves_dtype",
            "test_rope_takes_tables_of_another_dtype",
            "test_attention_runs_in_bf16",
            "test_attention_runs_in_fp64",
            "test_attention_takes_tables_of_another_dtype",
        ),
    ),
    "device": (
        ("device", "dtype", "bf16"),
        ("test_rmsnorm_follows_its_device", "test_swiglu_follows_its_device", "test_rope_follows_its_device",
         "test_rope_tables_lie_on_the_positions_device", "test_attention_follows_its_device"),
    ),
    "length": (
        ("long", "longest"),
        ("test_rmsnorm_has_no_longest_text", "test_swiglu_has_no_longest_text", "test_rope_has_no_longest_text",
         "test_attention_has_no_longest_text", "test_attention_mask_has_no_longest_text"),
    ),
    "nothing": (  # what no other part can meet
        (),
        ("test_rmsnorm_is_your_own", "test_rmsnorm_leaves_torch_as_it_was", "test_rmsnorm_gamma_starts_at_one",
         "test_rmsnorm_accepts_one_channel_and_no_rows", "test_swiglu_accepts_one_unit_and_no_rows",
         "test_rope_leaves_torch_as_it_was", "test_attention_is_your_own", "test_attention_leaves_torch_as_it_was",
         "test_attention_mask_rejects_more_queries_than_keys"),
    ),
}  # fmt: skip


def matters(ingredients_test, test):
    """Whether a test can be red because a test of an ingredient is: not for a detail that it does not ask for."""
    if part_of_test(ingredients_test) == "attention" and part_of_test(test) in DEPTH:
        return True  # options of the attention's own forward
    for words, details in DETAILS.values():
        if ingredients_test in details:
            return any(word in test for word in words)
    return True


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
    # a depth part inside a function that works without it is named by itself
    "qknorm": "qknorm",
    "window": "window",
    "cache": "cache",
    "recipe": "recipe",
}  # all others: objectives


def part_of_test(name):
    """test_rope_preserves_norm -> rope."""
    prefix = name.removeprefix("test_").split("_")[0]
    if prefix not in PARTS + ADVICE:
        raise ValueError(f"{name}: a test's name begins with its part, one of {', '.join(PARTS + ADVICE)}.")
    return prefix


def part_of_exercise(name):
    """GroupedQueryAttention.forward -> attention."""
    return EXERCISE_PART.get(name.split(".")[0], "objectives")


# The files of the implementation that a test file asks.
ASKS = {
    "test_rmsnorm.py": ("modules",),
    "test_swiglu.py": ("modules",),
    "test_budget.py": ("modules", "budget"),
    "test_rope.py": ("rope",),
    "test_attention.py": ("modules", "rope", "attention"),
    "test_block.py": ("modules", "rope", "attention", "model"),
    "test_backward.py": ("modules",),
    "test_qknorm.py": ("modules", "rope", "attention", "model"),
    "test_softcap.py": ("modules", "rope", "attention", "model"),
    "test_window.py": ("modules", "rope", "attention", "model"),
    "test_cache.py": ("modules", "rope", "attention", "model"),
    "test_recipe.py": ("modules", "rope", "attention", "model", "budget"),
    "test_objectives.py": ("objectives",),
    "test_logits.py": ("modules", "rope", "attention", "model"),
    "test_memory.py": ("modules", "rope", "attention", "model"),
}
