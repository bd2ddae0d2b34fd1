"""What `python -m PACKAGE COMMAND` shares: a command is a module with HELP, add_arguments(parser) and run(args)."""

import argparse
import errno
import io
import os
import sys

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EBADF)


def run_command(prog, description, modules, argv=None):
    """Run the command that the arguments name, of {name: module}, and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a console that lacks a letter shows "?" and goes on
    parser = argparse.ArgumentParser(prog=prog, description=description)
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name, module in modules.items():
        command = commands.add_parser(name, help=module.HELP, description=module.HELP)
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    args = parser.parse_args(argv)
    try:
        code = args.run(args)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        print()
        return 130
    except BrokenPipeError:  # whoever read has seen enough
        _give_up_on_stdout()
        return 141
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        _give_up_on_stdout()
        print(f"The output can't be written: {error.strerror}.", file=sys.stderr)
        return 1


def _give_up_on_stdout():
    """Python writes what is left once more at its end; let that go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def refuse(error):
    """Say in one sentence what went wrong with the implementation under test; the exit code is 1.

    An exception in which no line of that code is involved is our own fault and goes on.
    """
    from nanolm.subject import StudentError  # brings torch, which --help should not wait for

    if isinstance(error, StudentError):
        if not error.place:
            raise error
        error = f"The implementation under test raised {error}."
    print(error, file=sys.stderr)
    return 1
