"""The autograder that Gradescope's container is built from: one zip, for instructors only.

It holds the grader, the tests, the reference and the course's secret, so it is no part of what students get.
"""

import io
import zipfile
from pathlib import Path

from grading.paths import ROOT
from grading.week.release.bundle import LONG_AGO, NAME
from grading.week.release.errors import ReleaseError

AUTOGRADER = f"{NAME}-gradescope.zip"
HERE = Path(__file__).parent / "gradescope"
SCRIPTS = ("setup.sh", "run_autograder")  # at the top of the zip, as Gradescope's documentation asks for them
TAKEN = (
    "nanolm/**/*.py",
    "tests/**/*.py",
    "tests/machinery/*.toml",
    "tests/machinery/*.safetensors",
    "tests/golden/*.safetensors",
    "reference/*.py",
    "grading/__init__.py",
    "grading/paths.py",
    "grading/lean_pytest.py",
    "grading/authoring/__init__.py",
    "grading/authoring/golden.py",
    "grading/grader/**/*.py",
    "pyproject.toml",
    "LICENSE",
)
WEEK = "week"  # the folder of the zip that holds them
PINS = ("constraints.txt", "requirements-sandbox.txt")


def autograder_files(secret):
    """{path in the zip: (bytes, mode)}."""
    files = {}
    for pattern in TAKEN:
        found = sorted(path for path in ROOT.glob(pattern) if path.is_file())
        if not found:
            raise ReleaseError(f"{pattern} is missing in {ROOT}: the autograder would lack it.")
        files |= {f"{WEEK}/{path.relative_to(ROOT).as_posix()}": (path.read_bytes(), 0o644) for path in found}
    files |= {name: ((HERE / name).read_bytes(), 0o755) for name in SCRIPTS}
    files |= {name: ((ROOT / name).read_bytes(), 0o644) for name in PINS}
    files["secret.txt"] = (secret, 0o600)
    return files


def write_autograder(out, course):
    """Write the zip into the folder `out`, with the secret of the course that was made there; its path."""
    place = Path(out) / AUTOGRADER
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path, (data, mode) in sorted(autograder_files((course / "secret.txt").read_bytes()).items()):
            entry = zipfile.ZipInfo(path, LONG_AGO)
            entry.external_attr, entry.create_system = (0o100000 | mode) << 16, 3
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    aside = place.with_suffix(".new")
    aside.touch(mode=0o600)
    aside.chmod(0o600)  # whoever has the file has the secret
    aside.write_bytes(buffer.getvalue())
    aside.replace(place)
    return place
