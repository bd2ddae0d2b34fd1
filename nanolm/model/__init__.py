"""The language model around the student's block, its given parts, and real weights for it.

    language_model.py  embed, blocks, final norm, head
    given_parts.py     the 2019 parts and the other placements of the norm
    weights.py         SmolLM2-135M from its GGUF file, reordered for neighbouring pairs
    tokenizer.py       its tokenizer
"""

from nanolm.model.language_model import LanguageModel

__all__ = ["LanguageModel"]
