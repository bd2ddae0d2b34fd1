"""The student's side: `python -m nanolm COMMAND`."""

import sys

from nanolm import budget, generate, hint
from nanolm.command_line import run_command

COMMANDS = {"generate": generate, "budget": budget, "hint": hint}


def main(argv=None):
    """Run one command and return its exit code."""
    return run_command("python -m nanolm", "The modern block, from the command line.", COMMANDS, argv)


if __name__ == "__main__":
    sys.exit(main())
