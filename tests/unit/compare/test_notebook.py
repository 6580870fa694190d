"""A comparison shown in a notebook."""

from __future__ import annotations

from agent.compare.table import compare_traces
from tests.unit.compare.runs import run


def test_a_notebook_shows_the_table_and_what_must_be_said_first():
    shown = compare_traces(run({"A/a": (2, 10**6)}), run({"A/a": (2, 2 * 10**6), "B/b": (1, 5)}))
    assert "<td>A</td><td>2</td><td>1.000</td><td>2</td><td>2.000</td>" in shown._repr_html_()
    assert "<td>total</td>" in shown._repr_html_()


def test_foreign_names_are_text_in_a_notebook():
    html = compare_traces(run({}), run({"<script>x<": (1, 5)}))._repr_html_()
    assert "<script" not in html
    assert "&lt;script&gt;" in html


def test_two_empty_runs_show_an_empty_table():
    assert "<tbody></tbody>" in compare_traces(run({}), run({}))._repr_html_()
