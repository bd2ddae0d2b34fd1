"""`python -m nanolm budget PRESET`: what a configuration costs, held against the implementation under test."""

import argparse

from nanolm.command_line import refuse

HELP = "what a preset costs: parameters by part, KV cache, FLOPs and bytes read per token"


def add_arguments(parser):
    parser.add_argument("preset", help="a configuration by name, e.g. llama3-8b")
    parser.add_argument("--context", type=_count, help="tokens that the cache holds (default: the preset's T_max)")
    parser.add_argument("--bytes", type=_count, default=2, help="bytes a number: 2 for bf16 (default), 4 for fp32")
    parser.add_argument("--impl", help="package or folder to ask (default: NANOLM_IMPL, else exercises_en)")


def run(args):
    """Print the table; 0, or 1 where a count differs from the model built, or after one sentence on what is missing."""
    # torch comes in here and not above: --help should not wait for it
    from nanolm import config, impl
    from nanolm.asking import subject
    from nanolm.errors import GUARDED_ERRORS
    from nanolm.recipe import ledger

    try:
        cfg = config.preset(args.preset)
        ledger.check_context(cfg, args.context or cfg.T_max)
        implementation = impl.load(args.impl)
        found = subject.Subject(implementation).guard(
            lambda: ledger.reckon(cfg, implementation, args.context, args.bytes)
        )
    except (ValueError, impl.ImplementationError, *GUARDED_ERRORS) as error:
        return refuse(error)
    print(f"{args.preset} with {implementation.name}", "", *ledger.table(found), sep="\n")
    return 1 if found.disagreement else 0


def _count(text):
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)
