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


def test_a_notebook_gives_unequal_work_per_pass():
    base = {"A/a": (100, 10**8), "B/b": (100, 10**8)}
    html = compare_traces(
        run(base), run({"A/a": (90, 10**8), "B/b": (90, 9 * 10**7)})
    )._repr_html_()
    assert "<th>per pass</th>" in html
    assert "<td>0.00 %</td><td>+11.11 %</td>" in html
    assert "<td>-10.00 %</td><td>0.00 %</td>" in html


def test_a_notebook_names_the_rules_and_the_coverage_of_both_sides():
    shown = compare_traces(run({"A/a": (1, 3)}), run({"A/a": (1, 1), "Unlabelled/u": (1, 3)}))
    assert (
        "<p>rules test@1, digest 000000000000; base: validated 0.00 % · vendor 100.00 % · inferred"
        " 0.00 % · unlabelled 0.00 %; new: validated 0.00 % · vendor 25.00 % · inferred 0.00 % ·"
        " unlabelled 75.00 %</p>" in shown._repr_html_()
    )
