"""`python -m grading release --out FOLDER`: what students get, checked for leaks, and tried where asked."""

import sys
import tempfile
import time
from pathlib import Path

from grading.week.release.errors import LeakError, ReleaseError

HELP = "make the students' bundle (folder and zip) and the course's nbgrader release, after a check for leaks"


def add_arguments(parser):
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="where the release goes")
    parser.add_argument("--try", dest="try_it", action="store_true", help="and install and check it anew")
    parser.add_argument("--gradescope", action="store_true", help="and Gradescope's autograder, for instructors only")
    parser.add_argument("--github", action="store_true", help="and what a course on GitHub needs, with Classroom 50")


def run(args):
    """Make the release, say where it is; 1 where there is none or the trial fails."""
    # nbgrader and torch come in here and not above: --help should not wait for them
    from grading.authoring.marked import MarkError
    from grading.week.release.autograder import write_autograder
    from grading.week.release.github import write_github
    from grading.week.release.release import make_release
    from grading.week.release.trial import try_out

    start = time.monotonic()
    try:
        args.out.mkdir(parents=True, exist_ok=True)
        made = make_release(args.out)
        print(f"{made.folder}: {made.files} files, no leak, {time.monotonic() - start:.0f} s")
        print(f"{made.zip}: {made.zip.stat().st_size / 1e6:.1f} MB")
        print(f"{made.hub}: what a JupyterHub installs (docs/jupyterhub.md)")
        print(f"{made.course}: the same for nbgrader; next, in this folder: nbgrader release_assignment week06")
        if args.gradescope:
            print(f"{write_autograder(args.out, made.course)}: Gradescope's autograder, with the course's secret in it")
        if args.github:
            print(f"{write_github(args.out, made.folder)}: for a course on GitHub (docs/github.md)")
        if args.try_it:
            print("Trying it in a new environment, as its README says:", flush=True)
            with tempfile.TemporaryDirectory() as room:
                before, after = try_out(made.zip, Path(room))
            print(f"  as unpacked: {before.states}; solved: {after.states}")
            print(f"The bundle works, {time.monotonic() - start:.0f} s")
    except LeakError as error:
        print(*error.leaks, f"No release: {error}", sep="\n", file=sys.stderr)
        return 1
    except (ReleaseError, MarkError, OSError) as error:
        print(f"No release: {error}", file=sys.stderr)
        return 1
    return 0
