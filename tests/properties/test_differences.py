"""What holds for any two labelled runs."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from agent.compare.consensus import Calls, common_ratio
from agent.compare.figures import rounded_to_sum
from agent.compare.table import TraceDiff, compare_traces
from agent.core.rules import UNLABELLED
from agent.render.documents import diff_document, to_json
from tests.unit.compare.runs import run

CATEGORIES = ("GEMM", "MLA", "CastFromFP8", "Elementwise", UNLABELLED)
NAMES = st.builds(
    "{}/{}".format,
    st.sampled_from(CATEGORIES),
    st.sampled_from(("a", "b", "{lambda()#3}", "f<int>")),
)
KERNELS = st.dictionaries(NAMES, st.tuples(st.integers(1, 500), st.integers(0, 10**12)), max_size=8)
RUNS = st.lists(KERNELS, min_size=1, max_size=4).map(lambda ranks: run(*ranks))


@given(RUNS, RUNS)
@settings(max_examples=150, deadline=None)
def test_rows_and_ledger_add_up_to_the_events_to_the_nanosecond(base, new):
    diff = compare_traces(base, new)
    assert diff.residual_ns == 0
    assert sum(row.base.time_ns for row in diff.categories) == base.trace.kernel_ns
    assert sum(row.new.time_ns for row in diff.categories) == new.trace.kernel_ns
    assert sum(row.new.count for row in diff.categories) == new.trace.count
    assert diff.ledger.net_ns == new.trace.kernel_ns - base.trace.kernel_ns
    for row in diff.categories:
        assert sum(kernel.delta_ns for kernel in row.kernels) == row.delta_ns


@given(RUNS, RUNS)
@settings(max_examples=150, deadline=None)
def test_the_effects_of_duration_and_calls_add_up_to_the_difference_at_equal_work(base, new):
    diff = compare_traces(base, new)
    at_equal_work = diff.work.total.raw if diff.work.ratio is None else diff.work.total.per_pass
    assert sum(impact.effect for impact in diff.impacts) == at_equal_work
    entries = (diff.ledger_per_pass or diff.ledger).entries
    moved = {entry.category: entry.delta_ns for entry in entries}
    assert {one.category: one.net_ns for one in diff.impacts if one.net_ns} == moved
    for impact in (*diff.impacts, *diff.kernel_impacts):
        assert impact.per_call_effect + impact.calls_effect == impact.effect
        assert impact.per_call_ns + impact.calls_ns == impact.net_ns


@st.composite
def runs_of_unequal_work(draw):
    """Two runs whose calls have one ratio, and whose times have none."""
    base_passes, new_passes = draw(st.integers(1, 40)), draw(st.integers(1, 40))
    names = draw(st.lists(NAMES, min_size=3, max_size=8, unique=True))
    sides = []
    for passes in (base_passes, new_passes):
        times = draw(st.lists(st.integers(0, 10**6), min_size=len(names), max_size=len(names)))
        calls = [(index + 1) * passes for index in range(len(names))]
        sides.append(dict(zip(names, zip(calls, times, strict=True), strict=True)))
    if draw(st.booleans()):
        sides[1]["Introduced/i"] = (1, draw(st.integers(1, 10**6)))
    return run(sides[0]), run(sides[1])


@given(runs_of_unequal_work())
@settings(max_examples=150, deadline=None)
def test_figures_at_equal_work_are_the_same_number_wherever_they_stand(runs):
    document = diff_document(compare_traces(*runs))
    ledger = document["ledger_per_pass"] or document["ledger"]
    work = document["work"]
    entries = [*ledger["introduced"], *ledger["costs"], *ledger["savings"], *ledger["unclaimed"]]
    assert work["per_pass_delta_ns"] in {ledger["net_ns"], None}
    assert ledger["net_ns"] == sum(entry["delta_ns"] for entry in entries)
    existing = sum(entry["delta_ns"] for entry in entries if entry["status"] != "new")
    assert work["existing"]["per_pass_delta_ns"] in {existing, None}
    impacts = {one["id"]: one["net_ns"] for one in document["impact"]["categories"]}
    assert {key: net for key, net in impacts.items() if net} == {
        entry["id"]: entry["delta_ns"] for entry in entries
    }
    assert sum(impacts.values()) == ledger["net_ns"]


@given(st.lists(st.fractions(max_denominator=97), max_size=12))
def test_rounded_values_add_up_to_the_rounded_sum(values):
    rounded = rounded_to_sum(values)
    assert sum(rounded) == round(sum(values))
    assert all(abs(a - b) < 1 for a, b in zip(rounded, values, strict=True))


@given(RUNS)
@settings(max_examples=60, deadline=None)
def test_a_run_does_not_differ_from_itself(one):
    diff = compare_traces(one, one)
    assert diff.empty
    assert diff.work.ratio in {1, None}
    assert (*diff.ledger.entries, *diff.targets, *diff.replacements, *diff.aliases) == ()


@given(RUNS, RUNS)
@settings(max_examples=150, deadline=None)
def test_swapping_the_sides_mirrors_the_difference(base, new):
    forward, backward = compare_traces(base, new), compare_traces(new, base)
    assert backward.delta_ns == -forward.delta_ns
    assert rows_of(backward) == mirrored(rows_of(forward))
    assert [alias.base_names for alias in backward.aliases] == [
        alias.new_names for alias in forward.aliases
    ]
    assert {(pair.new.name, pair.old.name) for pair in backward.replacements} == {
        (pair.old.name, pair.new.name) for pair in forward.replacements
    }
    assert [spread.chance for spread in backward.noise.spreads] == [
        spread.chance for spread in forward.noise.spreads
    ]
    assert (backward.work.ratio is None) == (forward.work.ratio is None)
    if forward.work.ratio is not None and backward.work.ratio is not None:
        assert backward.work.ratio * forward.work.ratio == 1
    assert backward.comparable == forward.comparable


@given(RUNS, RUNS, st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_the_order_of_ranks_changes_no_byte_of_the_report(base, new, random):
    before = to_json(diff_document(compare_traces(base, new)))
    for side in (base, new):
        ranks = list(side.trace.ranks)
        random.shuffle(ranks)
        object.__setattr__(side.trace, "ranks", tuple(ranks))
    shuffled = diff_document(compare_traces(base, new))
    for side in ("base", "new"):
        shuffled[side]["ranks"].sort(key=lambda rank: rank["label"])
    assert to_json(shuffled) == before


@given(
    st.lists(st.tuples(st.integers(1, 400), st.integers(1, 400)), min_size=1, max_size=8),
    st.integers(1, 9),
    st.integers(1, 9),
)
@settings(max_examples=150, deadline=None)
def test_a_ratio_that_all_rows_share_is_found_exactly(pairs, base_passes, new_passes):
    rows = [
        Calls(str(index), base_passes * per_pass, new_passes * per_pass, weight)
        for index, (per_pass, weight) in enumerate(pairs)
    ]
    found = common_ratio(rows)
    assert found is not None
    assert found.ratio == Fraction(new_passes, base_passes)
    assert len(found.agreeing) == len(rows)


Rows = dict[tuple[str, frozenset[str]], tuple[int, int, int, int]]


def rows_of(diff: TraceDiff) -> Rows:
    return {
        (kernel.category, frozenset({*kernel.base_names, *kernel.new_names})): (
            kernel.base.count,
            kernel.base.time_ns,
            kernel.new.count,
            kernel.new.time_ns,
        )
        for row in diff.categories
        for kernel in row.kernels
    }


def mirrored(rows: Rows) -> Rows:
    return {key: (values[2], values[3], values[0], values[1]) for key, values in rows.items()}
