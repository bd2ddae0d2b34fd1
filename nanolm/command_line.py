"""What `python -m PACKAGE COMMAND` shares: a command is a module with HELP, add_arguments(parser) and run(args)."""

import argparse
import ast
import errno
import importlib
import importlib.util
import io
import os
import sys
import time
from pathlib import Path

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EBADF)


def run_command(prog, description, modules, argv=None, missing=None):
    """Run the command that the arguments name, of {name: module's dotted name}, and return its exit code.

    Only the module of that command is imported: others may need what is not installed, or take seconds. `missing` says
    what a command lacks on this machine: of a name alone, before the module is imported, then with its arguments.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a console that lacks a letter shows "?" and goes on
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(prog=prog, description=description)
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name, module in modules.items():
        text = help_of(module)
        command = commands.add_parser(name, help=text, description=text)
        if argv[:1] == [name]:
            if _says(name, missing(name) if missing else ()):
                return 1
            asked = importlib.import_module(module)
            asked.add_arguments(command)
            command.set_defaults(run=asked.run)
    args = parser.parse_args(argv)
    if _says(argv[0], missing(argv[0], args) if missing else ()):
        return 1
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


def _says(command, sentences):
    """Say what keeps a command from beginning; whether there is something."""
    for sentence in sentences:
        print(f"{command} can't begin: {sentence.rstrip('.')}.", file=sys.stderr)
    return bool(sentences)


def _give_up_on_stdout():
    """Python writes what is left once more at its end; let that go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def counted(what, items, total):
    """Yield the items, counted on standard error: one line that changes on a terminal, one at the end elsewhere."""
    start, count, live = time.monotonic(), 0, sys.stderr.isatty()
    for item in items:
        count += 1
        if live:
            print(f"\r{what}: {count} of {total}", end="", file=sys.stderr, flush=True)
        yield item
    back = "\r" if live else ""
    print(f"{back}{what}: {count} of {total}, {time.monotonic() - start:.0f} s", file=sys.stderr)


def help_of(module):
    """The HELP of a module, read from its file."""
    tree = ast.parse(Path(importlib.util.find_spec(module).origin).read_text(encoding="utf-8"))
    return next(
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "HELP"
    )


def refuse(error):
    """Say in one sentence what went wrong with the implementation under test; the exit code is 1.

    An exception in which no line of that code is involved is our own fault and goes on.
    """
    from nanolm.errors import StudentError  # brings torch, which --help should not wait for

    if isinstance(error, StudentError):
        if not error.place:
            raise error
        error = f"The implementation under test raised {error}."
    print(error, file=sys.stderr)
    return 1
