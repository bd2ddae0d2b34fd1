"""`python -m grading.demo_class NOTEBOOK OUT`."""

import argparse
import sys
from pathlib import Path

from grading import demo_class


def main(argv=None):
    """Write the class; 1 with a sentence where the notebook can't be read."""
    parser = argparse.ArgumentParser(prog="python -m grading.demo_class", description="A class of 30 to try with.")
    parser.add_argument("notebook", type=Path, metavar="NOTEBOOK", help="the released week06.ipynb")
    parser.add_argument("out", type=Path, metavar="OUT", help="the folder to write into")
    args = parser.parse_args(argv)
    try:
        demo_class.write(args.notebook, args.out)
    except (OSError, ValueError, KeyError) as error:
        print(f"{args.notebook} can't be used as the released notebook: {error}", file=sys.stderr)
        return 1
    print(f"{len(demo_class.CLASS)} submissions: {args.out / demo_class.ARCHIVE}, {args.out / demo_class.ROSTER}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
