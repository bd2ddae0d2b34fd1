#!/usr/bin/env bash
# Gradescope runs this once, as root, when it builds the autograder's image. It may be run again.
set -euo pipefail
cd /autograder/source
venv=/autograder/venv

find_python() {
    local name
    for name in python3.13 python3.12 python3.11 python3 python3.14; do
        if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11, 2))' 2>/dev/null; then
            command -v "$name"
            return
        fi
    done
    return 1
}

if ! "$venv/bin/python" -c 'import torch, pytest, safetensors' 2>/dev/null; then
    apt-get update
    apt-get install -y python3-venv
    # An older system (Ubuntu 22.04 has Python 3.10) gets a Python of its own, where other users can read it.
    if ! python=$(find_python); then
        apt-get install -y python3-pip
        python3 -m pip install --quiet uv
        UV_PYTHON_INSTALL_DIR=/autograder/python uv python install 3.12
        python=$(UV_PYTHON_INSTALL_DIR=/autograder/python uv python find --managed-python 3.12)
    fi
    "$python" -m venv "$venv"
    # The CPU build of torch, where its index can be reached: the other one is some gigabytes larger.
    "$venv/bin/python" -m pip install --quiet --no-cache-dir --constraint constraints.txt \
        --extra-index-url https://download.pytorch.org/whl/cpu torch numpy pytest safetensors
    # Walls for student code; where the container lets nobody use them, the grader says which ones stand without.
    "$venv/bin/python" -m pip install --quiet --no-cache-dir --require-hashes --requirement requirements-sandbox.txt
fi

"$venv/bin/python" -m compileall -q week
# The secret, the tests and the solutions are root's alone: student code runs as somebody else.
chown -R root:root /autograder/source
chmod -R go= /autograder/source
