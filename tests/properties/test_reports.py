"""Foreign text is text in every kind of report, whatever it holds."""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections import Counter
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.compare.table import TraceDiff, compare_traces
from agent.render.columns import cell_width
from agent.render.diff_markdown import diff_markdown
from agent.render.diff_tables import diff_csv, diff_github
from agent.render.diff_text import diff_text
from agent.render.documents import diff_document, to_json
from agent.render.html import diff_html, label_html
from agent.render.label_report import label_markdown, label_text
from agent.render.svg import waterfall_svg
from tests.builders import signature
from tests.unit.compare.runs import rank, rules_for, run

PIECES = (
    *("<script>", "</script>", "\"'><img src=x onerror=1>", "]]>", "<!--", "-->", "&amp;"),
    *("|", "`", "``", "~~", "\\", "#", "[a](b)", "![", "$x$", "1. "),
    *("\n", "\r", "\t", "\x00", "\x1b[31m", "\u202e", "\u2028", "\u200b", "\ud800", "\ufffe"),
    *("::error::", "%0A", "=1+1", "@x", "漢", "e\u0301", "😀"),
)
TEXT = st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=4).map("".join)
CATEGORY = TEXT.map(lambda text: text.replace("/", "") or "A")
KERNELS = st.dictionaries(
    st.tuples(CATEGORY, TEXT, TEXT),
    st.tuples(st.integers(1, 9), st.integers(0, 10**10)),
    max_size=3,
)


@st.composite
def comparisons(draw) -> TraceDiff:
    sides = [draw(KERNELS), draw(KERNELS)]
    rules = rules_for({category for side in sides for category, _, _ in side})
    label = draw(TEXT)
    runs = [
        run(
            rank(
                {
                    signature(f"{category}/{name}", op=op): value
                    for (category, name, op), value in side.items()
                },
                label=label,
            ),
            name=draw(TEXT) or "run",
            rules=rules,
        )
        for side in sides
    ]
    return compare_traces(*runs, by=draw(st.sampled_from(("", "rank"))))


def hostile(examples: int):
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large]
    return settings(max_examples=examples, deadline=None, suppress_health_check=checks)


@given(comparisons())
@hostile(60)
def test_text_moves_no_cursor_and_fits(diff):
    for line in diff_text(diff).split("\n"):
        assert cell_width(line) <= 80
        assert not {unicodedata.category(char) for char in line} & {"Cc", "Cf", "Cs", "Zl", "Zp"}


class Tags(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.attributes: set[str] = set()
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags[tag] += 1
        self.attributes |= {name for name, _ in attrs}


@given(comparisons())
@hostile(40)
def test_a_page_holds_its_own_tags_alone(diff):
    found = Tags(diff_html(diff))
    assert (found.tags["script"], found.tags["style"], found.tags["img"]) == (1, 1, 0)
    assert not {name for name in found.attributes if name.startswith("on")}
    assert not {"src", "style"} & found.attributes


@given(comparisons())
@hostile(60)
def test_a_drawing_is_xml(diff):
    ET.fromstring(waterfall_svg(diff))


@given(comparisons())
@hostile(60)
def test_markdown_tables_keep_their_columns(diff):
    n_columns = 0
    for line in diff_markdown(diff).split("\n"):
        found = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else 0
        assert not (n_columns and found) or found == n_columns
        n_columns = found


@given(comparisons())
@hostile(60)
def test_csv_and_annotations_keep_their_lines(diff):
    rows = list(csv.reader(io.StringIO(diff_csv(diff, kernels=True))))
    assert {len(row) for row in rows} == {len(rows[0])}
    assert not [cell for row in rows[1:] for cell in row[:3] if cell.startswith(tuple("=+@\t\r"))]
    kinds = ("::warning title=", "::notice title=", "::error title=")
    assert all(line.startswith(kinds) for line in diff_github(diff).rstrip("\n").split("\n"))


@given(comparisons())
@hostile(40)
def test_every_report_can_be_written(diff):
    to_json(diff_document(diff)).encode("ascii")
    for report in (diff_text, diff_markdown, diff_csv, diff_github, diff_html, waterfall_svg):
        report(diff).encode("utf-8")


@given(KERNELS, TEXT)
@hostile(40)
def test_a_report_on_a_run_can_be_written(kernels, name):
    table = {
        signature(f"{category}/{text}", op=op): value
        for (category, text, op), value in kernels.items()
    }
    labelled = run(table, name=name or "run")
    for page in (
        label_text(labelled, kernels=2),
        label_markdown(labelled, kernels=2),
        label_html(labelled),
    ):
        page.encode("utf-8")
    assert max(map(cell_width, label_text(labelled, kernels=2).split("\n"))) <= 80
