"""Markdown, CSV and workflow annotations."""

from __future__ import annotations

import csv
import io
from html.parser import HTMLParser

import pytest
from markdown_it import MarkdownIt

from agent.compare.gates import judge_gates, parse_gate
from agent.render.delimited import csv_text
from agent.render.diff_markdown import diff_markdown
from agent.render.diff_tables import HEAD, diff_csv, diff_github
from agent.render.label_report import label_csv, label_markdown
from agent.render.markdown import cell, code
from tests.unit.render.pairs import hostile, one_run, plain


def test_markdown_holds_the_result_the_table_and_the_sources():
    text = diff_markdown(plain())
    assert text.startswith("### bf16 → fp8: kernel time per pass -0.52 %")
    assert "| GEMM | 400 | 4.000 | 360 | 3.640 | -0.360 | -9.00 % | +1.11 % |" in text
    assert "| **total** |" in text
    assert "`sglang@21c4fc6334d1 python/backend.py:7-8`, when `self.dtype == fp8`" in text


class Tags(HTMLParser):
    """Every tag and attribute of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag, attrs) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


PLAIN_TAGS = {
    "h3",
    "p",
    "strong",
    "em",
    "code",
    "ul",
    "li",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
}
PLAIN_TAGS |= {"details", "summary"}


@pytest.mark.parametrize("text", [diff_markdown(hostile(), top=100), diff_markdown(plain())])
def test_a_reader_of_markdown_sees_no_markup_of_foreign_text(text):
    html = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    seen = Tags()
    seen.feed(html)
    assert seen.tags - PLAIN_TAGS <= {"blockquote"}
    assert seen.attributes <= {"style"}, "markdown-it aligns columns with it"


def test_every_row_of_a_markdown_table_has_as_many_cells_as_its_head():
    html = MarkdownIt("commonmark").enable("table").render(diff_markdown(hostile(), top=100))
    for one in html.split("<table>")[1:]:
        rows = one.split("</table>")[0].split("<tr>")[1:]
        assert len({row.count("</td>") + row.count("</th>") for row in rows}) == 1
        assert not any("<td></td>\n</tr>" in row for row in rows if "kernel" in rows[0])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("k<int>", "`k<int>`"),
        ("a`b", "``a`b``"),
        ("`a", "`` `a ``"),
        ("a|b", "`a\\|b`"),
        ("a\nb", "`a\\x0ab`"),
        ("", "`  `"),
    ],
)
def test_a_name_is_one_piece_of_code(name, expected):
    assert code(name) == expected


@pytest.mark.parametrize(
    ("foreign", "expected"),
    [
        ("a*b*", "a\\*b\\*"),
        ("<b> &amp;", "&lt;b&gt; &amp;amp;"),
        ("[x](y)", "\\[x\\](y)"),
        ("http://x", "http\\://x"),
        ("85 % (of all)", "85 % (of all)"),
    ],
)
def test_text_is_escaped_where_it_could_be_markup(foreign, expected):
    assert cell(foreign) == expected


def test_csv_holds_every_category_in_nanoseconds():
    rows = list(csv.DictReader(io.StringIO(diff_csv(plain()))))
    gemm = next(row for row in rows if row["category"] == "GEMM")
    assert (gemm["base_count"], gemm["base_time_ns"], gemm["delta_ns"]) == (
        "400",
        "4000000",
        "-360000",
    )
    assert sum(int(row["delta_ns"]) for row in rows) == plain().delta_ns


def test_csv_by_kernel_adds_up_to_the_same():
    rows = list(csv.DictReader(io.StringIO(diff_csv(plain(), kernels=True))))
    assert sum(int(row["delta_ns"]) for row in rows) == plain().delta_ns


def test_a_spreadsheet_takes_no_name_for_a_formula():
    for row in csv.reader(io.StringIO(diff_csv(hostile(), kernels=True))):
        assert len(row) == len(HEAD)
        assert not any(value.startswith(("=", "+", "@")) for value in row)
    assert csv_text(("a",), [("-1+1",), (-1,)]) == "a\n'-1+1\n-1\n"


def test_annotations_are_one_line_each_and_cannot_be_forged():
    diff = hostile()
    gates = judge_gates([parse_gate("total>1%", diff.ruleset)], diff)
    for line in diff_github(diff, gates).strip().split("\n"):
        assert line.startswith(("::warning title=", "::notice title=", "::error title="))
        assert line.split("::", 2)[1].count("\n") == 0


def test_a_failed_gate_is_an_error_annotation():
    diff = plain()
    gates = judge_gates([parse_gate("new-category", diff.ruleset)], diff)
    assert "::error title=--fail-on new-category::new categories: CastFromFP8" in diff_github(
        diff, gates
    )


def test_a_run_as_markdown_and_csv():
    assert "| GEMM | 4 | 0.400000 | 80.00 % |" in label_markdown(one_run())
    assert label_csv(one_run()) == (
        "category,count,time_ns,rules\n"
        "GEMM,4,400000,test@1 000000000000\n"
        "Unlabelled,2,100000,test@1 000000000000\n"
    )


def test_a_run_as_csv_by_kernel_says_which_rule_gave_each_its_label():
    assert label_csv(one_run(), kernels=True) == (
        "category,kernel,rule,count,time_ns,rules\n"
        "GEMM,GEMM/a,rule.GEMM,4,400000,test@1 000000000000\n"
        "Unlabelled,Unlabelled/odd,,2,100000,test@1 000000000000\n"
    )
    assert "| GEMM | rule.GEMM | 0.400000 | 4 | `GEMM/a` |" in label_markdown(one_run(), kernels=1)
