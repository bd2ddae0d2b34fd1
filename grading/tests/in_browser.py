"""A real JupyterLab in a real headless Chromium, for the tests that look at pages. Skips where either is missing."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager

import pytest

from grading import preflight
from grading.paths import ROOT

for package in ("jupyterlab", "ipywidgets", "matplotlib"):
    pytest.importorskip(package, reason=f"{package} is missing: pip install -e .[notebooks]")
pytest.importorskip("selenium", reason="needs a driver of browsers: pip install selenium")
CHROMIUM, DRIVER = preflight.chromium(), shutil.which("chromedriver")
if missing := preflight.browser():
    pytest.skip(missing, allow_module_level=True)

from selenium import webdriver  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--window-size=1500,1100",
)  # fmt: skip
PATIENCE = 420  # seconds, for a busy machine: a notebook may train a few deep stacks
# Where a run leaves its pictures for a person to look at, if that is wanted.
SCREENSHOTS = os.environ.get("NANOLM_SCREENSHOTS")


@contextmanager
def jupyterlab(room, *settings, **environment):
    """The address of a JupyterLab over the folder `room`, with settings and a home of its own."""
    port = free_port()
    environment = {
        **os.environ, "PYTHONPATH": str(ROOT), "HOME": str(room), "JUPYTER_CONFIG_DIR": str(room / "config"),
        "JUPYTER_RUNTIME_DIR": str(room / "runtime"), "JUPYTERLAB_WORKSPACES_DIR": str(room / "workspaces"),
        **environment,
    }  # fmt: skip
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}",
        "--ServerApp.port_retries=0", "--IdentityProvider.token=", "--ServerApp.password=",
        f"--ServerApp.root_dir={room}", *settings,
    ]  # fmt: skip
    with (room / "log.txt").open("w", encoding="utf-8") as log:
        server = subprocess.Popen(command, env=environment, cwd=room, stdout=log, stderr=log)
    address = f"http://127.0.0.1:{port}"
    try:
        wait_for(lambda: answers(f"{address}/api"), "JupyterLab did not start", server)
        yield address
    finally:
        server.terminate()
        server.wait(timeout=300)


@contextmanager
def chromium(profile):
    """A headless Chromium with an empty profile in the folder `profile`."""
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.set_page_load_timeout(PATIENCE)
    try:
        yield driver
    finally:
        driver.quit()


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def answers(url):
    try:
        with urllib.request.urlopen(url, timeout=5) as reply:
            return "version" in json.load(reply)
    except OSError:
        return False


def wait_for(condition, complaint, process):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        if condition():
            return
        time.sleep(0.5)
    pytest.fail(complaint)


def until(browser, condition):
    """What `condition` gives, as soon as it is true."""
    return WebDriverWait(browser, PATIENCE, poll_frequency=0.3).until(lambda _: condition())


def visible(browser, selector, text=""):
    """The first visible element whose text begins so, or None."""
    for element in browser.find_elements(By.CSS_SELECTOR, selector):
        if element.text.strip().startswith(text) and element.is_displayed():
            return element
    return None


def look(browser, name):
    """Leave a picture where one is wanted."""
    if SCREENSHOTS:
        browser.save_screenshot(os.path.join(SCREENSHOTS, f"{name}.png"))
