"""`python -m nanolm generate`: SmolLM2-135M speaks through the implementation under test."""

import argparse
import math
import sys

from nanolm.command_line import refuse

HELP = "let SmolLM2-135M continue a text through the implementation under test"


def add_arguments(parser):
    parser.add_argument("--prompt", type=_prompt, required=True, help="the text to continue")
    parser.add_argument("--tokens", type=_count, default=20, help="how many tokens to add (default 20)")
    parser.add_argument(
        "--temperature", type=_temperature, default=0.0, help="0 takes the likeliest token (default), above it samples"
    )
    parser.add_argument(
        "--seed", type=_seed, default=0, help="of the sampling: the same seed, the same text (default 0)"
    )
    parser.add_argument("--impl", help="package or folder to run (default: NANOLM_IMPL, else exercises_en)")


def run(args):
    """Print prompt and continuation token by token; 0, or 1 after one sentence on what is missing."""
    # torch comes in here and not above: --help should not wait for it
    from nanolm import impl
    from nanolm.asking import subject
    from nanolm.errors import GUARDED_ERRORS
    from nanolm.model import weights

    try:
        implementation = impl.load(args.impl)
        line = f"Implementation under test: {implementation.name} ({implementation.folder})"
        print(line, file=sys.stderr)  # apart from the text, which may be piped on
        smollm2 = _read_smollm2()
        subject.Subject(implementation).guard(lambda: _speak(args, implementation, *smollm2))
    except (impl.ImplementationError, weights.WeightsError, *GUARDED_ERRORS) as error:
        return refuse(error)
    return 0


def _read_smollm2():
    from nanolm.model import tokenizer, weights

    reader = weights.open_gguf(weights.find_smollm2())
    return tokenizer.tokenizer_of(reader), weights.smollm2_config(reader), weights.state_dict_of(reader)


def _speak(args, implementation, words, cfg, state):
    import torch

    from nanolm.asking import subject
    from nanolm.model import tokenizer, weights

    model = weights.build_model(cfg, state, implementation)
    model.register_forward_hook(_refuse_nan)
    ids = torch.tensor(words.encode(args.prompt).ids)
    if len(ids) + args.tokens > cfg.T_max:
        said = f"The prompt has {len(ids):,} tokens, {args.tokens:,} are to come: SmolLM2 was made for {cfg.T_max:,}."
        raise subject.ContractError(f"{said} Shorten the prompt, or ask for fewer with --tokens.")
    generator = torch.Generator().manual_seed(args.seed)
    ends = tokenizer.end_tokens(words)
    new = model.generate(ids, args.tokens, args.temperature, generator, stop=ends)
    pieces = tokenizer.stream_text(words, (token for token in new if token not in ends))
    first = next(pieces, "")  # before anything is printed: a part that is not started speaks up here
    print(args.prompt + first, end="", flush=True)
    for piece in pieces:
        print(piece, end="", flush=True)
    print()


def _refuse_nan(model, inputs, logits):
    from nanolm.errors import ContractError

    if not logits[:, -1].isfinite().all():
        raise ContractError("The logits hold NaN or infinity, so no token can be chosen: does pytest pass?")


def _prompt(text):
    if not text:
        raise argparse.ArgumentTypeError("it is empty: give at least one word to continue from")
    return text.encode("utf-8", "replace").decode("utf-8")  # a terminal may hand over bytes that are no text


def _count(text):
    return _whole_number(text, low=1, high=8192)


def _seed(text):
    return _whole_number(text, low=0, high=2**63 - 1)


def _whole_number(text, low, high):
    if not text.isdecimal() or not low <= int(text) <= high:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {low} to {high}")
    return int(text)


def _temperature(text):
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 0")
    return value
