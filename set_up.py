"""`python3 set_up.py [PART]`: the environment .venv, with all that a part of the course needs; pinned packages only.

pyproject.toml says under [tool.set_up] what a part takes: extras, and files of packages that come without what they
ask for. This runs on the bare Python that it is given, and says in one sentence what that one lacks. What is installed
already stays: a set-up that was stopped goes on when it is started again.
"""

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
PIP = (26, 3)  # from this one on, pip says at once what does not fit; Debian's tries version after version
CPU_BUILD = "https://download.pytorch.org/whl/cpu"
GIGABYTES, WITH_CUDA = 3, 9  # of disk that an environment takes, without and with torch's build for a GPU
PATIENCE = 10  # seconds until it says what it is doing
SHOWN = re.compile(r"\s*(Collecting|Downloading|Using cached|Building|Preparing|Installing) ")


class SetUpFailed(Exception):
    """There is no environment; the message is one sentence, or what pip says."""


def main():
    """Make the environment, or bring it up to date; 1 with a sentence where that is impossible."""
    parser = argparse.ArgumentParser(description="Make the environment .venv, with pinned packages only.")
    parser.add_argument("part", nargs="?", default="student", metavar="PART", help="as pyproject.toml has them")
    start = time.monotonic()
    try:
        set_up(parser.parse_args().part)
    except SetUpFailed as error:
        print(f"The set-up stops: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nThe set-up was stopped; the same command goes on from here.", file=sys.stderr)
        return 130
    seconds = time.monotonic() - start
    if seconds > PATIENCE:
        print(f"The environment .venv is ready, after {seconds:.0f} s.")
    return 0


def set_up(part):
    """All steps, in order. The first ones ask only what is cheap to know."""
    check_python()
    check_system()
    parts = parts_of_the_course()
    if part not in parts:
        raise SetUpFailed(f"there is no part {part!r} of the course: it is one of {', '.join(parts)}.")
    make_environment()
    if pip_version() < PIP:
        pip("bringing pip up to date", f"pip=={'.'.join(map(str, PIP))}")
    check_torch()
    files = [name for name in parts[part] if name.endswith(".txt")]
    for file in files:
        hashes = "--hash=" in (ROOT / file).read_text(encoding="utf-8")
        pip(f"installing {file}", "--no-deps", *(["--require-hashes"] if hashes else []), "--requirement", file)
    extras = ",".join(name for name in parts[part] if name not in files)
    pins = ("--constraint", "constraints.txt", "--build-constraint", "constraints.txt")
    pip("installing the packages", *pins, "--editable", f".[{extras}]")
    for other, names in parts.items():
        if set(names) <= set(parts[part]):
            (VENV / f"{other}.stamp").touch()  # what a Makefile asks for


def parts_of_the_course():
    """{part: names of extras and files}."""
    import tomllib  # an older Python, which lacks it, has been refused by now

    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["set_up"]


def check_python():
    """Refuse a Python that the packages are not pinned for. pyproject.toml has the bounds; old ones can't read TOML."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    low, high = re.search(r'requires-python = ">=([\d.]+),<([\d.]+)"', project).groups()
    if not numbers(low) <= sys.version_info[:3] < numbers(high):
        raise SetUpFailed(
            f"Python {platform.python_version()} ({sys.executable}) does not fit: it takes {low} or newer, below "
            f"{high}. Name another one: make PYTHON=python3.12 ..., or python3.12 set_up.py."
        )
    try:
        import ensurepip  # noqa: F401  Debian has it in a package of its own
        import venv  # noqa: F401
    except ImportError:
        raise SetUpFailed(
            f"{sys.executable} can't make environments: apt-get install python3-venv, or name another Python."
        ) from None


def check_system():
    """Refuse a machine that torch has no build for."""
    system, machine = platform.system(), platform.machine()
    fits = {
        "Linux": machine in ("x86_64", "aarch64") and numbers(platform.libc_ver()[1]) >= (2, 28),
        "Darwin": machine == "arm64" and numbers(platform.mac_ver()[0]) >= (14,),
        "Windows": machine == "AMD64",
    }
    if not fits.get(system) or sys.maxsize < 1 << 32:
        raise SetUpFailed(
            f"torch has no build for this {system} ({machine}): it takes Linux with glibc 2.28 or newer on x86_64 or "
            "aarch64, macOS 14 or newer on arm64, or Windows on x86_64, and a Python of 64 bits."
        )
    if os.pathsep in str(ROOT):
        raise SetUpFailed(f"{ROOT} has a {os.pathsep!r} in its name, which no environment can be in: move the folder.")


def numbers(version):
    """(3, 11, 2) of "3.11.2"; empty where there is none."""
    return tuple(int(number) for number in re.findall(r"\d+", version))


def make_environment():
    """A new .venv, unless there is one of the same Python."""
    if not PYTHON.exists():
        run("making .venv", [sys.executable, "-m", "venv", str(VENV)])
    asked = subprocess.run([str(PYTHON), "-c", "import sys, pip; print(*sys.version_info[:2])"],
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8")  # fmt: skip
    if asked.returncode != 0 or numbers(asked.stdout) != sys.version_info[:2]:
        raise SetUpFailed(f"{VENV} is the environment of another Python, or a broken one: remove it and begin again.")


def pip_version():
    """The numbers of the environment's pip."""
    said = subprocess.run([str(PYTHON), "-m", "pip", "--version"], stdout=subprocess.PIPE, encoding="utf-8").stdout
    return numbers(said.split(" from ")[0])


def check_torch():
    """Before torch is fetched: is there room for it, and is it the build for a GPU on a machine without one?"""
    asked = ["install", "--dry-run", "--quiet", "--report", "-", "--no-deps", "--constraint", "constraints.txt"]
    command = [str(PYTHON), "-m", "pip", *asked, "torch"]
    said = subprocess.run(command, cwd=str(ROOT), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8")
    # Where pip fails here, the real installation fails a moment later and says why.
    coming = json.loads(said.stdout)["install"] if said.returncode == 0 else []
    if not coming:
        return
    with_cuda = any(need.startswith(("nvidia", "cuda")) for need in coming[0]["metadata"].get("requires_dist", []))
    with_cuda = with_cuda and platform.system() == "Linux"
    needed, free = WITH_CUDA if with_cuda else GIGABYTES, shutil.disk_usage(str(ROOT)).free / 1e9
    if with_cuda and not Path("/dev/nvidiactl").exists():
        print(
            f"There is no NVIDIA GPU here, and torch comes with all that one needs: {WITH_CUDA - GIGABYTES} GB more.\n"
            "For the small build stop this (Ctrl-C), and then the same command again after\n"
            f"    {PYTHON.relative_to(ROOT)} -m pip install --constraint constraints.txt --index-url {CPU_BUILD} torch",
            flush=True,
        )
    if free < needed:
        raise SetUpFailed(f"the packages need {needed} GB, and {ROOT} has {free:.1f} GB left: make room there.")


def pip(what, *arguments):
    """Let pip install something, in words `what`."""
    command = [str(PYTHON), "-m", "pip", "--disable-pip-version-check", "install", "--progress-bar", "off"]
    run(what, [*command, *arguments])


def run(what, command):
    """Run a command without a word, unless it takes long or fails."""
    process = subprocess.Popen(
        command, cwd=str(ROOT), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", errors="replace"
    )
    said = []
    reader = threading.Thread(target=lambda: said.extend(iter(process.stdout.readline, "")), daemon=True)
    reader.start()
    say = Progress(what)
    while reader.is_alive():
        reader.join(0.2)
        say.now(said)
    say.done()
    if process.wait() != 0:
        raise SetUpFailed(f"{what} failed. {last_words(said)}")


class Progress:
    """What a step does once it takes long: one line that changes on a terminal, one line in all elsewhere."""

    def __init__(self, what):
        self.what, self.start, self.shown = what, time.monotonic(), 0

    def now(self, said):
        seconds = time.monotonic() - self.start
        if seconds < PATIENCE:
            return
        if sys.stderr.isatty():
            last = next((line.strip() for line in reversed(said) if SHOWN.match(line)), "")
            line = f"{self.what}, {seconds:.0f} s: {last}"[: shutil.get_terminal_size().columns - 1]
            print(f"\r{line:<{self.shown}}", end="", file=sys.stderr, flush=True)
            self.shown = len(line)
        elif not self.shown:
            self.shown = 1
            print(f"{self.what}; this takes some minutes", file=sys.stderr, flush=True)

    def done(self):
        if self.shown and sys.stderr.isatty():
            print(f"\r{'':<{self.shown}}\r", end="", file=sys.stderr, flush=True)


def last_words(said):
    """What a failed command says is wrong: pip's errors, else its last line."""
    lines = [line.strip() for line in said if line.strip()]
    errors = [line[len("ERROR: ") :] for line in lines if line.startswith("ERROR: ")]
    return "\n".join(errors[-5:] or lines[-1:])


if __name__ == "__main__":
    sys.exit(main())
