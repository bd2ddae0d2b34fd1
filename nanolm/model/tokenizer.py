"""SmolLM2's tokenizer, from the vocabulary and merges that its GGUF file carries."""

from nanolm.model.weights import INSTALL_READERS, WeightsError, field

END_TOKENS = ("<|endoftext|>", "<|im_end|>")  # of a text, of an answer in a chat
CONTROL = 3  # GGUF's token type of <|endoftext|> and its like, which are never split


def tokenizer_of(reader):
    """A tokenizers.Tokenizer: `.encode(text).ids` and `.decode(ids)`.

    The text is cut into pieces first: every digit alone (2024 is four tokens, so numbers of any
    length look alike), then words with the space before them; then byte pairs merge inside a piece.
    WeightsError without the package, or for a file of another tokenizer.
    Source: the pre-tokenizer `smollm` of llama.cpp; byte-level BPE: Radford et al., GPT-2 (2019), section 2.2.
    """
    try:
        from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    except ImportError:
        raise WeightsError(f"The package tokenizers is missing: {INSTALL_READERS}") from None

    kind = (field(reader, "tokenizer.ggml.model"), field(reader, "tokenizer.ggml.pre"))
    if kind != ("gpt2", "smollm"):
        raise WeightsError(f"The GGUF file's tokenizer is {kind[0]} with {kind[1]}, but only gpt2 with smollm is read.")
    tokens = field(reader, "tokenizer.ggml.tokens")
    merges = [tuple(merge.split(" ")) for merge in field(reader, "tokenizer.ggml.merges")]
    tokenizer = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    types = field(reader, "tokenizer.ggml.token_type")
    control = [token for token, token_type in zip(tokens, types, strict=True) if token_type == CONTROL]
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in control])
    return tokenizer


def stream_text(tokenizer, ids):
    """Yield the text of each token as it comes; a letter of several tokens comes with its last one."""
    from tokenizers.decoders import DecodeStream

    stream = DecodeStream(skip_special_tokens=False)
    for token in ids:
        text = stream.step(tokenizer, token)
        if text is not None:
            yield text


def end_tokens(tokenizer):
    """Ids of the tokens that end a text."""
    return {tokenizer.token_to_id(token) for token in END_TOKENS}
