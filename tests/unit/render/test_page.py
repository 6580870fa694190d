"""The HTML page and the SVG, as text."""

from __future__ import annotations

import html
import re
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pytest

from agent.compare.table import compare_traces
from agent.render.html import diff_html, label_html
from agent.render.svg import waterfall_svg
from tests.unit.compare.runs import run
from tests.unit.render.pairs import by_rank, hostile, incomplete, one_run, plain

PAGES = {
    "plain": diff_html(plain()),
    "hostile": diff_html(hostile()),
    "incomplete": diff_html(incomplete()),
    "label": label_html(one_run()),
    "parts": diff_html(by_rank()),
}
VOID = {"meta", "link", "br"}


class Outline(HTMLParser):
    """Checks that tags nest, and gathers what could load or run something."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.places: list[str] = []
        self.risky: list[str] = []
        self.counts: dict[str, int] = {}

    def handle_starttag(self, tag, attrs) -> None:
        self.counts[tag] = self.counts.get(tag, 0) + 1
        for name, value in attrs:
            if name == "id":
                self.ids.append(value)
            if name == "href" and value.startswith("#"):
                self.places.append(value[1:])
            elif name.startswith("on") or name in {"src", "href", "style", "action", "srcset"}:
                self.risky.append(f"{tag} {name}={value}")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs) -> None:
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag


def outline(page: str) -> Outline:
    seen = Outline()
    seen.feed(page)
    assert seen.open == []
    return seen


@pytest.mark.parametrize("name", PAGES)
def test_a_page_nests_and_loads_nothing(name):
    seen = outline(PAGES[name])
    assert seen.risky == ["link href=data:,"]
    assert len(seen.ids) == len(set(seen.ids))
    assert set(seen.places) <= set(seen.ids)
    assert seen.counts["script"] == seen.counts["style"] == 1
    assert not {"img", "iframe", "object", "form", "b-script"} & set(seen.counts)


def test_hostile_names_add_no_tag():
    """The hostile page has the tags of the plain one and no others."""
    assert set(outline(PAGES["hostile"]).counts) <= set(outline(PAGES["plain"]).counts) | {
        "b",
        "br",
    }


def test_the_policy_allows_one_style_one_script_and_no_request():
    policy = re.search(r'Security-Policy" content="([^"]*)"', PAGES["plain"])
    assert policy is not None
    rules = dict(part.strip().split(" ", 1) for part in html.unescape(policy[1]).split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["img-src"] == "data:"
    for kind in ("style-src", "script-src"):
        assert re.fullmatch(r"'sha256-[A-Za-z0-9+/=]{44}'", rules[kind])


def test_a_page_is_the_same_bytes_each_time():
    assert diff_html(plain()) == PAGES["plain"]


def test_what_must_be_said_first_stands_before_any_figure():
    page = PAGES["incomplete"]
    assert page.index("DF110") < page.index("<dl")
    assert "savings" not in page.split("<script>")[0].split("</style>")[1]


@pytest.mark.parametrize("make", [plain, hostile, incomplete])
@pytest.mark.parametrize("width", [376, 960])
def test_the_waterfall_is_a_drawing_of_its_own(make, width):
    root = ET.fromstring(waterfall_svg(make(), width=width))
    assert root.get("width") == str(width)
    names = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert names <= {"svg", "style", "title", "desc", "rect", "line", "text"}
    for rect in root.iter("{http://www.w3.org/2000/svg}rect"):
        if rect.get("x"):
            assert float(rect.get("x")) >= 0
            assert float(rect.get("x")) + float(rect.get("width")) <= width


@pytest.mark.parametrize("name", PAGES)
def test_a_head_stands_over_its_column(name):
    """`outside` stood right over cells on the left, so that they read as those beside them."""
    table = r'"sortable"><caption>[^<]*</caption><thead><tr>(.*?)</tr></thead>'
    tables = re.findall(rf"{table}<tbody><tr[^>]*>(.*?)</tr>", PAGES[name])
    assert len(tables) == PAGES[name].count('class="sortable"')
    for head, row in tables:
        on_the_left = ['class="left"' in one for one in re.findall(r"<th [^>]*>", head)]
        assert on_the_left == ['class="n"' not in one for one in re.findall(r"<td [^>]*>", row)]


def test_a_comparison_without_differences_still_draws():
    one = run({"A/a": (1, 1)})
    assert "nothing changed" in waterfall_svg(compare_traces(one, one))


def test_a_page_names_grown_kernels_and_says_what_source_lines_are_worth():
    page = diff_html(plain())
    assert "GEMM: at most 0.040 ms (0.70 %), grown kernel, 400 -&gt; 360 calls" in page
    assert page.count("not checked against what these runs executed") == 1


def test_the_page_of_a_run_opens_each_category_to_its_kernels_and_rules():
    page = PAGES["label"]
    assert "Kernels of GEMM" in page
    assert "<code>GEMM/a</code>" in page
    assert "rule.GEMM" in page
    assert "no rule" in page


def test_a_page_of_parts_has_one_waterfall_and_leads_to_each_part():
    seen = outline(PAGES["parts"])
    assert seen.counts["svg"] == outline(PAGES["plain"]).counts["svg"]
    assert seen.places == [f"part-{number}" for number in range(8)]
