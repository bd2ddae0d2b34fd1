"""`python -m grading COMMAND`. Each command is a module with HELP, add_arguments(parser) and run(args)."""

import argparse
import io
import sys

from grading.grader import doctor, run

COMMANDS = {"run": run, "doctor": doctor}


def main(argv=None):
    """Run one command and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a console that lacks a letter shows "?" and goes on
    parser = argparse.ArgumentParser(prog="python -m grading", description="The instructor's side of the week.")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name, module in COMMANDS.items():
        command = commands.add_parser(name, help=module.HELP, description=module.HELP)
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    args = parser.parse_args(argv)
    try:
        return args.run(args)
    except KeyboardInterrupt:
        print()
        return 130


if __name__ == "__main__":
    sys.exit(main())
