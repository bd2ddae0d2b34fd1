"""The demo class as Canvas's "Download Submissions" gives it: one archive, a file or more a student.

An entry is named LASTFIRST[_LATE]_USERID_FILEID_NAME, the first word in small letters without spaces
and signs, as Canvas names it. NAME is what the student uploaded: mostly week06.zip.
"""

import io
import re
import stat
import zipfile

WEEK = "week06"
FIRST_USER, FIRST_FILE = 1001, 50001
JUNK = {f"__MACOSX/{WEEK}/._{WEEK}.ipynb": b"\0\5\26\7", f"{WEEK}/.DS_Store": b"\0\0\0\1Bud1", f"{WEEK}/Thumbs.db": b""}
ELSEWHERE = {"../../nbgrader_config.py": b"import sys\nsys.exit('imported')\n"}
LINK = f"{WEEK}/exercises_en/objectives.py"


def entry(student, user, file, name):
    """The name of one upload in Canvas's archive."""
    who = re.sub(r"\W", "", "".join(reversed(student.name))).lower()
    return "_".join([who, *(["LATE"] if student.late else []), str(user), str(file), name])


def uploads(packing, notebook, code):
    """{uploaded name: bytes} of one student; `notebook` and `code` are {name: bytes}."""
    inside = {**notebook, **{f"exercises_en/{name}": data for name, data in code.items()}}
    if packing == "loose":
        return {**notebook, **code}
    if packing == "crlf":
        inside = {name: _windows(data) if name.endswith(".py") else data for name, data in inside.items()}
    top = {"no top folder": "", "deep": f"homework/final version/{WEEK}/"}.get(packing, f"{WEEK}/")
    members = {f"{top}{name}": data for name, data in inside.items()}
    if packing == "deep":
        members |= JUNK
    if packing == "climbing":
        members |= ELSEWHERE
    data = archive(members, links={LINK: "../../../../source/week06/week06.ipynb"} if packing == "climbing" else {})
    if packing == "cut off":
        data = data[: len(data) // 2]
    return {f"{WEEK}-1.zip" if packing == "again" else f"{WEEK}.zip": data}


def archive(members, links=None):
    """A zip archive as bytes, the same for the same members; `links` become symbolic links."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in {**members, **(links or {})}.items():
            info = zipfile.ZipInfo(name, (2026, 10, 30, 12, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            kind = stat.S_IFLNK if links and name in links else stat.S_IFREG
            info.external_attr = (kind | 0o644) << 16
            file.writestr(info, data)
    return stream.getvalue()


def _windows(data):
    return data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
