"""The student's side: `python -m nanolm COMMAND`."""

import sys

from nanolm.command_line import run_command

COMMANDS = {name: f"nanolm.student.{name}" for name in ("check", "hint", "generate", "budget")}


def main(argv=None):
    """Run one command and return its exit code."""
    return run_command("python -m nanolm", "The modern block, from the command line.", COMMANDS, argv)


if __name__ == "__main__":
    sys.exit(main())
