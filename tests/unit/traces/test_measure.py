"""Busy time, span, overruns and repeats, against plain arithmetic."""

from __future__ import annotations

from itertools import accumulate, pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from agent.traces.columns import KernelColumns
from agent.traces.events import KERNEL, MEMCPY
from agent.traces.measure import measure

EPOCH = 1_772_442_166_525_160_130


def kernels(*events: tuple[int, ...], work: int = KERNEL) -> KernelColumns:
    """Columns of (start, duration[, stream[, device[, correlation[, name]]]])."""
    columns = KernelColumns()
    for index, event in enumerate(events):
        usual = (0, 0, 7, 0, index, 0)
        start, duration, stream, device, correlation, name = (*event, *usual[len(event) :])
        columns.start_ns.append(start)
        columns.duration_ns.append(duration)
        columns.stream.append(stream)
        columns.device.append(device)
        columns.correlation.append(correlation)
        columns.name.append(name)
        columns.work.append(work)
    return columns


def test_an_empty_rank_has_no_timeline():
    found = measure(KernelColumns())
    assert (found.busy_ns, found.span_ns, found.unplaced) == (0, 0, 0)


def test_overlap_of_streams_is_busy_once():
    found = measure(kernels((1_000, 100, 7), (1_050, 100, 20), (1_300, 10, 7)))
    assert (found.busy_ns, found.span_ns, found.origin_ns) == (160, 310, 1_000)


def test_events_that_start_together_may_fill_the_last_block():
    """Nothing is left after a block that ends with several of one start."""
    found = measure(kernels(*[(1_000, 100)] * 3), block=1)
    assert (found.busy_ns, found.span_ns, len(found.duplicates)) == (100, 100, 0)


def test_devices_are_busy_each():
    found = measure(kernels((1_000, 100, 7, 0), (1_000, 100, 7, 1)))
    assert (found.busy_ns, found.span_ns) == (200, 100)


def test_overlap_under_five_microseconds_is_legal():
    found = measure(kernels((10_000, 9_000), (14_001, 9_000), (18_002, 1_000)))
    assert found.clipped.events == 0


def test_overlap_beyond_five_microseconds_is_counted_with_its_excess():
    found = measure(kernels((10_000, 9_000), (13_000, 9_000), (22_000, 1_000)))
    assert (found.clipped.events, found.clipped.excess_ns) == (1, 6_000)


def test_other_streams_do_not_clip():
    found = measure(kernels((10_000, 1_000_000, 7), (13_000, 9_000, 20)))
    assert found.clipped.events == 0


def test_of_two_that_start_together_the_shorter_comes_first():
    found = measure(kernels((10_000, 90_000, 7, 0, 1), (10_000, 0, 7, 0, 2)))
    assert found.clipped.events == 0


def test_a_repeat_in_every_field_is_found_once_per_copy():
    same = (10_000, 500, 7, 0, 3, 1)
    found = measure(kernels(same, (10_000, 500, 7, 0, 4, 1), same, same))
    assert found.duplicates == {2, 3}
    assert found.busy_ns == 500


def test_the_same_on_another_stream_is_no_repeat():
    found = measure(kernels((10_000, 500, 7, 0, 3, 1), (10_000, 500, 8, 0, 3, 1)))
    assert not found.duplicates


def test_time_zero_does_not_stretch_the_span():
    found = measure(kernels((EPOCH, 500), (0, 0), (0, 900), (EPOCH + 1_000, 500)))
    assert (found.unplaced, found.origin_ns, found.span_ns) == (2, EPOCH, 1_500)
    assert found.busy_ns == 1_000


def test_a_timeline_that_begins_at_zero_is_kept():
    found = measure(kernels((0, 500), (1_000, 500)))
    assert (found.unplaced, found.origin_ns, found.span_ns) == (0, 0, 1_500)


def test_only_events_without_time():
    found = measure(kernels((0, 0), (0, 0)))
    assert (found.unplaced, found.span_ns) == (2, 0)


def test_copies_are_neither_busy_nor_span_but_set_the_origin():
    columns = kernels((1_000, 100), (5_000, 100))
    columns.work[0] = MEMCPY
    found = measure(columns)
    assert (found.origin_ns, found.busy_ns, found.span_ns) == (1_000, 100, 100)


event = st.tuples(
    st.integers(1, 60) | st.integers(EPOCH, EPOCH + 30),
    st.integers(0, 9),
    st.integers(0, 20),
    st.integers(0, 1),
    st.integers(0, 1),
    st.integers(0, 1),
)


@settings(deadline=None)
@given(st.lists(event, min_size=1, max_size=60), st.sampled_from([1, 3, 100]))
def test_figures_equal_plain_arithmetic(events, block):
    """Any order, any number of streams: as counted nanosecond by nanosecond."""
    found = measure(kernels(*events), block=block)
    unique = list(dict.fromkeys(events))
    assert found.duplicates == {index for index, one in enumerate(events) if one in events[:index]}
    starts = [start for start, *_ in unique]
    assert found.origin_ns == min(starts)
    assert found.span_ns == max(start + duration for start, duration, *_ in unique) - min(starts)
    busy = {
        (device, ns)
        for start, duration, _, device, *_ in unique
        for ns in range(start, start + duration)
    }
    assert found.busy_ns == len(busy)


far = st.tuples(
    st.integers(0, 60_000), st.integers(0, 20_000), st.integers(0, 3), st.integers(0, 1)
)


@settings(deadline=None)
@given(st.lists(far, min_size=1, max_size=40), st.integers(1, 5))
def test_overruns_and_the_widest_gap_equal_plain_arithmetic(events, block):
    """Each event against the next of its stream, and the holes in what is covered of a device."""
    events = [(EPOCH + start, *rest) for start, *rest in events]
    streams: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    devices: dict[int, list[tuple[int, int]]] = {}
    for start, duration, stream, device in events:
        streams.setdefault((stream, device), []).append((start, start + duration))
        devices.setdefault(device, []).append((start, start + duration))
    past = [
        end - start
        for spans in map(sorted, streams.values())
        for (_, end), (start, _) in pairwise(spans)
        if end - start > 5_000
    ]
    gaps = [0]
    for spans in map(sorted, devices.values()):
        ends = accumulate((end for _, end in spans), max)
        gaps += [start - end for end, (start, _) in zip(ends, spans[1:], strict=False)]
    found = measure(kernels(*events), block=block)
    assert (found.clipped.events, found.clipped.excess_ns) == (len(past), sum(past))
    assert found.widest_gap_ns == max(gaps)
