"""What students get: the files of the bundle, and the folder and the zip that they make."""

import io
import zipfile
from pathlib import Path, PurePosixPath

from grading.authoring import stubs
from grading.paths import EXERCISES, ROOT
from grading.week.release.errors import ReleaseError
from grading.week.release.packages import hub_pyproject, student_pyproject

NAME = "nanolm-week06"
ASSIGNMENT = "week06"
HUB = f"{NAME}-hub.zip"
README = Path(__file__).parent / "student_readme.md"
# From the repository as they are; everything else is made.
TAKEN = (
    "nanolm/**/*.py",
    "tests/**/*.py",
    "tests/machinery/hints.toml",
    "tests/machinery/fingerprints.safetensors",
    "tests/golden/*.safetensors",
    "notebooks/*.ipynb",
    "set_up.py",
    "constraints.txt",
    "requirements-weights.txt",
    "LICENSE",
)
LONG_AGO = (1980, 1, 1, 0, 0, 0)  # every entry's time: the same tree, the same bytes
A_FILE = 0o100644 << 16


def student_files():
    """{path in the bundle: bytes} of all but the week's notebook, which nbgrader makes; sorted."""
    files = {}
    for pattern in TAKEN:
        found = {path.relative_to(ROOT).as_posix(): path for path in ROOT.glob(pattern) if path.is_file()}
        if not found:
            raise ReleaseError(f"{pattern} is missing in {ROOT}: the bundle would lack it.")
        files |= {name: path.read_bytes() for name, path in found.items()}
    made = {f"{EXERCISES.name}/{name}": text for name, text in stubs.generate().items()}
    made |= {
        "README.md": README.read_text(encoding="utf-8"),
        "pyproject.toml": student_pyproject(),
    }
    files |= {path: text.encode("utf-8") for path, text in made.items()}
    return dict(sorted(files.items()))


def hub_files(files):
    """Of the bundle's files, what a JupyterHub installs so that a fetched week works: the library and the tests."""
    kept = {path: data for path, data in files.items() if path.startswith(("nanolm/", "tests/")) or path == "LICENSE"}
    return {**kept, "pyproject.toml": hub_pyproject().encode("utf-8")}


def write_folder(files, folder):
    """The files in a folder, made where it is missing."""
    for path, data in files.items():
        target = folder / PurePosixPath(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)


def zipped(files):
    """The bytes of a zip that unpacks into one folder, NAME; the same files, the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path, data in sorted(files.items()):
            entry = zipfile.ZipInfo(f"{NAME}/{path}", LONG_AGO)
            entry.compress_type, entry.external_attr, entry.create_system = zipfile.ZIP_DEFLATED, A_FILE, 3
            archive.writestr(entry, data)
    return buffer.getvalue()
