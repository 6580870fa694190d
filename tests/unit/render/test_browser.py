"""The page in a real browser: it sorts, folds, requests nothing, and fits 400 and 1400 pixels."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

import pytest

from agent.render.html import diff_html, label_html
from agent.render.svg import waterfall_svg
from tests.unit.render.pairs import by_rank, hostile, long_names, one_run, plain

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")

pytestmark = pytest.mark.block_network(allowed_hosts=["127.0.0.1", "localhost", "::1"])

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)
PAGES = {
    "plain.html": diff_html(plain()),
    "hostile.html": diff_html(hostile()),
    "parts.html": diff_html(by_rank()),
    "label.html": label_html(one_run()),
    "names.html": label_html(long_names()),
    "waterfall.svg": waterfall_svg(plain()),
}


@pytest.fixture(scope="module")
def browser():
    """Debian's Chromium; the tests are skipped where there is none."""
    chromium = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    chromedriver = shutil.which("chromedriver")
    if chromium is None or chromedriver is None:
        pytest.skip("no Chromium and chromedriver: apt-get install chromium chromium-driver")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = webdriver.ChromeOptions()
        options.binary_location = chromium
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(chromedriver))
        yield driver
        driver.quit()


@pytest.fixture
def visit(browser, tmp_path: Path):
    """Open a page at a width; afterwards nothing was requested and the console is empty."""

    def opened(name: str, width: int = 1400, *, dark: bool = False):
        (tmp_path / name).write_text(PAGES[name])
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        browser.get_log("performance")
        browser.get((tmp_path / name).as_uri())
        return browser

    yield opened
    assert browser.get_log("browser") == []
    assert {url for url in requests(browser) if not url.startswith(("file:", "data:"))} == set()
    assert len({url for url in requests(browser) if url.startswith("file:")}) <= 1


def requests(browser) -> list[str]:
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    return [
        message["params"]["request"]["url"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    ]


TABLE = (
    "const table = [...document.querySelectorAll('table.sortable')]"
    ".find(one => one.caption.textContent === 'Categories');"
)


def column(browser, number: int) -> list[str]:
    read = "return [...table.tBodies].map(body => body.rows[0].cells[arguments[0]].dataset.sort)"
    return browser.execute_script(TABLE + read, number)


def heads(browser) -> list:
    return browser.execute_script(TABLE + "return [...table.tHead.querySelectorAll('button.sort')]")


def test_numbers_sort_as_numbers_both_ways(visit):
    browser = visit("plain.html")
    head = next(head for head in heads(browser) if head.text == "base ms")
    number = int(head.get_dom_attribute("data-column"))
    head.click()
    down = [float(value) for value in column(browser, number)]
    assert down == sorted(down, reverse=True)
    assert head.find_element("xpath", "..").get_dom_attribute("aria-sort") == "descending"
    head.click()
    assert [float(value) for value in column(browser, number)] == sorted(down)


def test_names_sort_by_the_keyboard_alone(visit):
    from selenium.webdriver.common.keys import Keys

    browser = visit("plain.html")
    head = heads(browser)[0]
    browser.execute_script("arguments[0].focus()", head)
    head.send_keys(Keys.ENTER)
    names = column(browser, 0)
    assert names == sorted(names, reverse=True)
    head.send_keys(Keys.SPACE)
    assert column(browser, 0) == sorted(names)


def test_figures_a_row_has_not_sort_last_either_way(visit):
    browser = visit("plain.html")
    head = next(head for head in heads(browser) if head.text == "raw %")
    number = int(head.get_dom_attribute("data-column"))
    for _ in range(2):
        head.click()
        values = column(browser, number)
        assert values[-2:] == ["", ""]


def test_from_a_category_to_a_kernel_to_the_source_line(visit):
    browser = visit("plain.html")
    category = browser.find_element(
        "xpath", "//button[contains(@class,'toggle')][contains(.,'CastFromFP8')]"
    )
    place = browser.find_element(
        "xpath", "//tr[contains(@class,'detail')]//code[contains(.,'python/backend.py:7-8')]"
    )
    assert category.get_dom_attribute("aria-expanded") == "false"
    assert not place.is_displayed()
    category.click()
    assert category.get_dom_attribute("aria-expanded") == "true"
    kernel = browser.find_element(
        "xpath", "//button[contains(@class,'toggle')][contains(.,'CastFromFP8/copy')]"
    )
    assert kernel.is_displayed()
    assert not place.is_displayed()
    kernel.click()
    assert place.is_displayed()
    category.click()
    assert not place.is_displayed()


def test_all_rows_open_and_close_together(visit):
    browser = visit("plain.html")
    button = browser.find_element("css selector", "button.every")
    details = browser.find_elements("css selector", "tr.detail")
    button.click()
    assert all(detail.is_displayed() for detail in details)
    button.click()
    assert not any(detail.is_displayed() for detail in details)


def test_sorted_rows_keep_their_details(visit):
    browser = visit("plain.html")
    heads(browser)[0].click()
    script = (
        "return [...document.querySelectorAll('tr.opens')].every(row =>"
        " row.nextElementSibling && row.nextElementSibling.className === 'detail')"
    )
    assert browser.execute_script(script)


WIDE = ["plain.html", "hostile.html", "parts.html", "label.html", "waterfall.svg"]


@pytest.mark.parametrize("name", WIDE)
@pytest.mark.parametrize("width", [400, 1400])
@pytest.mark.parametrize("dark", [False, True])
def test_a_page_fits_its_width(visit, name, width, dark):
    """Wide tables scroll in themselves; the page does not."""
    browser = visit(name, width, dark=dark)
    if name.endswith("html"):
        over = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert browser.execute_script(over) == 0
        shown = browser.execute_script(
            "return [...document.querySelectorAll('svg')].filter(s => s.clientWidth).length"
        )
        assert shown == (0 if name == "label.html" else 1)


def test_a_part_is_a_click_away_and_opens_down_to_its_kernels(visit):
    browser = visit("parts.html", 400)
    browser.find_element("link text", "rank 3").click()
    top = "return document.getElementById('part-3').getBoundingClientRect().top"
    assert abs(browser.execute_script(top)) < 1
    rows = browser.find_elements("css selector", "#part-3 ~ section tr.opens button.toggle")
    rows[0].click()
    assert browser.find_element("css selector", "#part-3 ~ section tr.detail").is_displayed()


def test_dark_is_dark_and_light_is_light(visit):
    script = "return getComputedStyle(document.body).backgroundColor"
    light = visit("plain.html").execute_script(script)
    dark = visit("plain.html", dark=True).execute_script(script)
    assert (light, dark) == ("rgb(255, 255, 255)", "rgb(13, 17, 23)")


def test_hostile_names_run_nothing_and_stay_readable(visit):
    browser = visit("hostile.html")
    assert browser.title != "owned"
    assert (
        "<script>document.title='owned'</script>" in browser.find_element("css selector", "h1").text
    )
    assert browser.find_elements("css selector", "main img, main script, main b b, main h1 a") == []


def test_paper_shows_what_is_open_and_no_buttons(visit):
    browser = visit("plain.html")
    browser.find_element("css selector", "button.toggle").click()
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    shown = "return getComputedStyle(document.querySelector(arguments[0]), arguments[1])"
    assert browser.execute_script(f"{shown}.display", "button.every", None) == "none"
    marker = browser.execute_script(f"{shown}.content", "button.toggle", "::before")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert marker in {"none", '""'}
    assert browser.execute_cdp_cmd("Page.printToPDF", {})["data"]


@pytest.mark.parametrize("name", ["names.html", "plain.html"])
def test_a_long_name_stays_readable_on_a_narrow_screen(visit, name):
    """No column of a name is squeezed to a few letters."""
    browser = visit(name, 400)
    browser.find_element("css selector", "button.every").click()
    widths = browser.execute_script(
        "return [...document.querySelectorAll('td code')].map(c => c.closest('td').clientWidth)"
    )
    assert min(widths) >= 150
