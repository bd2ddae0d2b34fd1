"""`python -m grading demo-class NOTEBOOK OUT`."""

import sys
from pathlib import Path

from grading.demo import made_up_class

HELP = "write a made-up class of 30, as Canvas gives it"


def add_arguments(parser):
    parser.add_argument("notebook", type=Path, metavar="NOTEBOOK", help="the released week06.ipynb")
    parser.add_argument("out", type=Path, metavar="OUT", help="the folder to write into")


def run(args):
    """Write the class; 1 with a sentence where the notebook can't be read."""
    try:
        made_up_class.write(args.notebook, args.out)
    except (OSError, ValueError, KeyError) as error:
        print(f"{args.notebook} can't be used as the released notebook: {error}", file=sys.stderr)
        return 1
    archive, roster = args.out / made_up_class.ARCHIVE, args.out / made_up_class.ROSTER
    print(f"{len(made_up_class.CLASS)} submissions: {archive}, {roster}")
    return 0
