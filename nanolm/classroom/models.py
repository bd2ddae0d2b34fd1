"""A real model for the class: SmolLM2-135M through the implementation under test."""

from dataclasses import dataclass

from nanolm.config import ModelConfig
from nanolm.model import LanguageModel, tokenizer, weights


@dataclass
class RealModel:
    """SmolLM2-135M: the model, its configuration and its tokenizer."""

    model: LanguageModel
    cfg: ModelConfig
    words: object  # a tokenizers.Tokenizer: .encode(text).ids, .decode(ids)


def smollm2(implementation):
    """SmolLM2-135M around `implementation`; None, after one sentence, where its weights are not installed."""
    try:
        reader = weights.open_gguf(weights.find_smollm2())
        words, cfg = tokenizer.tokenizer_of(reader), weights.smollm2_config(reader)
        state = weights.state_dict_of(reader)
    except weights.WeightsError as error:
        print(f"This cell is left out. {error}")
        return None
    return RealModel(weights.build_model(cfg, state, implementation), cfg, words)
