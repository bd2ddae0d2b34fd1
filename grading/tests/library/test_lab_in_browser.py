"""JupyterLab in a real Chromium: notebooks are opened and run, boxes are clicked, the page follows."""

import shutil

import pytest
from in_browser import chromium, jupyterlab, look, until, visible
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from grading.paths import ROOT

pytestmark = pytest.mark.proof

PANEL = ".nanolm-recipe-panel"


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """The address of a JupyterLab over a copy of the notebooks, run with the reference."""
    room = tmp_path_factory.mktemp("lab")
    shutil.copytree(ROOT / "notebooks", room / "notebooks", ignore=shutil.ignore_patterns("source"))
    with jupyterlab(room, NANOLM_IMPL=str(ROOT / "reference")) as address:
        yield address


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


def run_all(browser, address):
    """Open a notebook and run all its cells."""
    browser.get(address)
    until(browser, lambda: browser.find_elements(By.CSS_SELECTOR, ".jp-Notebook .jp-Cell"))
    until(browser, lambda: visible(browser, ".lm-MenuBar-item", "Run")).click()
    until(browser, lambda: visible(browser, ".lm-Menu-item", "Run All Cells")).click()


def scroll_to_cell(browser, code):
    """Bring the cell with this code into sight: JupyterLab shows only the cells that are."""
    browser.execute_script(
        "const cells = [...document.querySelectorAll('.jp-Cell')];"
        "const cell = cells.find(c => c.textContent.includes(arguments[0]));"
        "if (cell) cell.scrollIntoView(); else document.querySelector('.jp-WindowedPanel-outer').scrollTop += 500;",
        code,
    )


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


def test_the_panel_in_jupyterlab_follows_its_boxes(lab, browser):
    run_all(browser, f"{lab}/lab/tree/notebooks/07_block.ipynb?reset")

    def panel_is_there():
        scroll_to_cell(browser, "shown = panel(")
        return number(browser, "card-parameters") == "6,195,253,248"

    until(browser, panel_is_there)
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

    until(browser, lambda: visible(browser, f"{PANEL} button", "everything off")).click()
    until(browser, lambda: number(browser, "card-parameters") == "7,002,005,504")
    assert number(browser, "card-kv-cache-per-token") == "524,288 bytes"
    visible(browser, f"{PANEL} button", "KV cache per token").click()
    arithmetic = until(browser, lambda: visible(browser, f"{PANEL} table.arithmetic"))
    assert "524,288" in arithmetic.text
    look(browser, "3_everything_off")


def test_a_slider_in_jupyterlab_redraws_its_picture(lab, browser):
    run_all(browser, f"{lab}/lab/tree/notebooks/05_gqa_and_cache.ipynb?reset")
    image = ".jp-OutputArea-output .widget-image, .jp-OutputArea-output img.widget-image"

    def slider_is_there():
        scroll_to_cell(browser, "tokens_kept = watch(")
        return visible(browser, ".widget-slider .noUi-handle") and visible(browser, image)

    until(browser, slider_is_there)
    look(browser, "4_slider")
    before = visible(browser, image).get_attribute("src")
    visible(browser, ".widget-slider .noUi-handle").send_keys(Keys.ARROW_LEFT)
    until(browser, lambda: visible(browser, image).get_attribute("src") not in (before, ""))
    assert "16384" in visible(browser, ".widget-slider").text.replace(",", "")
    look(browser, "5_slider_moved")
