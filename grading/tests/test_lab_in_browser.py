"""JupyterLab in a real Chromium: the block notebook is opened and run, boxes are clicked, the numbers follow."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

from grading.stubs import ROOT

for package in ("jupyterlab", "ipywidgets", "matplotlib"):
    pytest.importorskip(package, reason=f"{package} is missing: pip install -e .[notebooks]")
selenium = pytest.importorskip("selenium", reason="needs a driver of browsers: pip install selenium")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
if not (CHROMIUM and DRIVER):
    pytest.skip("needs a real browser: apt-get install chromium chromium-driver", allow_module_level=True)

from selenium import webdriver  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--window-size=1500,1100",
)  # fmt: skip
PATIENCE = 420  # seconds, for a busy machine: the notebook trains a few deep stacks
PANEL = ".nanolm-recipe-panel"
# Where a run leaves its pictures for a person to look at, if that is wanted.
SCREENSHOTS = os.environ.get("NANOLM_SCREENSHOTS")


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """The address of a JupyterLab over a copy of the notebooks, run with the reference."""
    room = tmp_path_factory.mktemp("lab")
    shutil.copytree(ROOT / "notebooks", room / "notebooks", ignore=shutil.ignore_patterns("source"))
    port = free_port()
    environment = {
        **os.environ, "NANOLM_IMPL": str(ROOT / "reference"), "PYTHONPATH": str(ROOT), "HOME": str(room),
        "JUPYTER_CONFIG_DIR": str(room / "config"), "JUPYTER_RUNTIME_DIR": str(room / "runtime"),
        "JUPYTERLAB_WORKSPACES_DIR": str(room / "workspaces"),
    }  # fmt: skip
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}",
        "--ServerApp.port_retries=0", "--IdentityProvider.token=", "--ServerApp.password=",
        f"--ServerApp.root_dir={room}",
    ]  # fmt: skip
    with (room / "log.txt").open("w", encoding="utf-8") as log:
        server = subprocess.Popen(command, env=environment, cwd=room, stdout=log, stderr=log)
    address = f"http://127.0.0.1:{port}"
    try:
        wait_for(lambda: answers(f"{address}/api"), "JupyterLab did not start", server)
        yield address
    finally:
        server.terminate()
        server.wait(timeout=30)


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


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.set_page_load_timeout(PATIENCE)
    yield driver
    driver.quit()


def until(browser, condition):
    return WebDriverWait(browser, PATIENCE, poll_frequency=0.3).until(lambda _: condition())


def number(browser, card):
    """The large number of a card of the panel, as it stands on the page."""
    script = "const found = document.querySelector(arguments[0]); return found ? found.textContent : '';"
    return browser.execute_script(script, f"{PANEL} .{card} .number")


def click(browser, label):
    """Click the checkbox of this label."""
    for box in browser.find_elements(By.CSS_SELECTOR, f"{PANEL} .widget-checkbox"):
        if box.text.strip() == label:
            box.find_element(By.CSS_SELECTOR, "input").click()
            return
    pytest.fail(f"the panel has no checkbox {label!r}")


def look(browser, name):
    if SCREENSHOTS:
        browser.save_screenshot(os.path.join(SCREENSHOTS, f"{name}.png"))


def test_the_panel_in_jupyterlab_follows_its_boxes(lab, browser):
    browser.get(f"{lab}/lab/tree/notebooks/07_block.ipynb?reset")
    until(browser, lambda: browser.find_elements(By.CSS_SELECTOR, ".jp-Notebook .jp-Cell"))
    menu = until(browser, lambda: entry(browser, ".lm-MenuBar-item", "Run"))
    menu.click()
    until(browser, lambda: entry(browser, ".lm-Menu-item", "Run All Cells")).click()

    def scrolled_to_the_panel():  # JupyterLab shows the cells that are in sight
        browser.execute_script(
            "const cells = [...document.querySelectorAll('.jp-Cell')];"
            "const cell = cells.find(c => c.textContent.includes('shown = panel('));"
            "if (cell) cell.scrollIntoView(); else document.querySelector('.jp-WindowedPanel-outer').scrollTop += 500;"
        )
        return number(browser, "card-parameters") == "6,195,253,248"

    until(browser, scrolled_to_the_panel)
    assert number(browser, "card-kv-cache-per-token") == "131,072 bytes"
    assert number(browser, "card-kv-cache-at-context") == "4.29 GB"
    assert number(browser, "card-usable-context") == "8,192 and beyond"
    look(browser, "1_llama_style")

    click(browser, "GQA")
    until(browser, lambda: number(browser, "card-kv-cache-per-token") == "524,288 bytes")
    assert number(browser, "card-parameters") == "7,000,559,616"
    assert number(browser, "card-kv-cache-at-context") == "17.18 GB"

    click(browser, "RoPE")
    until(browser, lambda: number(browser, "card-usable-context") == "8,192 tokens")
    assert number(browser, "card-parameters") == f"{7_000_559_616 + 8_192 * 4_096:,}"
    assert number(browser, "card-kv-cache-at-context") == "out of reach"
    look(browser, "2_no_gqa_no_rope")


def entry(browser, selector, text):
    """The first visible element of a menu with this text, or None."""
    for element in browser.find_elements(By.CSS_SELECTOR, selector):
        if element.text.strip().startswith(text) and element.is_displayed():
            return element
    return None
