"""`python -m grading picture`: README's picture of the class page, from the page that the demo has written.

The page is made anew by `make demo`; this shows its first screen in a headless Chromium and keeps it in docs/pictures/.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from grading import preflight
from grading.paths import ROOT

HELP = "README's picture of the class page, from the page that the demo has written"
PAGE = ROOT / "build" / "demo" / "report.html"
PICTURE = ROOT / "docs" / "pictures" / "class_page.png"
SIZE = (1000, 1900)  # pixels: the page down to the marks by part; below that it names a path of this machine
PATIENCE = 120  # seconds


def add_arguments(parser):
    parser.add_argument("--page", type=Path, default=PAGE, metavar="FILE", help="the page (build/demo/report.html)")
    parser.add_argument("--out", type=Path, default=PICTURE, metavar="FILE", help="(docs/pictures/class_page.png)")


def run(args):
    """Take the picture; 1 with a sentence where there is no page or no picture of it."""
    if not args.page.is_file():
        print(f"There is no picture: no {args.page}; make demo writes build/demo/report.html.", file=sys.stderr)
        return 1
    args.out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home:  # which no other Chromium holds
        taken = Path(home) / "page.png"
        command = (
            preflight.chromium(), "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
            f"--user-data-dir={home}/profile", "--disable-dev-shm-usage", "--no-first-run", "--disable-sync",
            "--disable-background-networking", "--disable-component-update", f"--screenshot={taken}",
            f"--window-size={SIZE[0]},{SIZE[1]}", args.page.absolute().as_uri(),
        )  # fmt: skip
        try:
            finished = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            print(f"There is no picture: Chromium took longer than {PATIENCE} s.", file=sys.stderr)
            return 1
        if not taken.is_file():
            last = [line for line in finished.stderr.splitlines() if line.strip()][-1:] or ["it said nothing"]
            print(f"There is no picture: Chromium ended with {finished.returncode}: {last[0]}", file=sys.stderr)
            return 1
        args.out.write_bytes(taken.read_bytes())
    print(f"{args.out}: {args.out.stat().st_size // 1000} kB")
    return 0
