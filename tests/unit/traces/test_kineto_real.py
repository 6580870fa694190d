"""Real Kineto files: counts and totals equal the index, columns equal a slow reference reader's."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from agent.core.kernels import RankTrace
from agent.traces.reader import read_trace
from tests.unit.traces.reference import Row, load, rows

KINETO = [
    "sglang_dense_decode_mi300.json.gz",
    "sglang_dense_decode_b300.json.gz",
    "sglang_qwen3_8b_prefill_decode_mi300.json.gz",
    "vllm_gptoss_piecewise_mi300.json.gz",
    "qwen15_mi300.json.gz",
    "qwen15_h100.json.gz",
    "gpu_only_mi210.json.gz",
    "resnet_act_checkpoint_mi300.json.gz",
    "flux_aiter_mi300.json.gz",
    "flux_aiter_sage_mi300.json.gz",
    *(f"sglang_dsv3_decode_h200/rank{rank}.json" for rank in range(3)),
    *(f"lightllm_dsv3_decode_h200/rank{rank}.json" for rank in range(3)),
]
LARGE = {"flux_aiter_mi300.json.gz", "flux_aiter_sage_mi300.json.gz"}


def columns(rank: RankTrace) -> list[Row]:
    table = rank.kernels
    assert table is not None
    return [
        Row(
            table.signatures[number].name,
            table.signatures[number].work,
            start + rank.origin_ns,
            duration,
            device,
            stream,
            correlation,
            table.signatures[number].op,
            table.signatures[number].input_dtypes,
            table.signatures[number].replayed,
        )
        for number, start, duration, device, stream, correlation in zip(
            table.signature_id,
            table.start_ns,
            table.duration_ns,
            table.device,
            table.stream,
            table.correlation,
            strict=True,
        )
    ]


@pytest.fixture(scope="module")
def index(shared: Path) -> dict[str, dict[str, str]]:
    with (shared / "traces" / "INDEX.tsv").open(encoding="utf-8") as file:
        return {row["file"]: row for row in csv.DictReader(file, delimiter="\t")}


def test_every_kineto_file_of_the_index_is_tried(index):
    listed = {name for name, row in index.items() if row["format"] == "chrome-json"}
    assert listed == set(KINETO)


@pytest.mark.parametrize("name", KINETO)
def test_kernels_and_total_equal_the_index(shared, index, name):
    (rank,) = read_trace(shared / "traces" / name).ranks
    row = index[name]
    assert rank.count == int(row["gpu_kernel_events"])
    assert round(rank.kernel_ns / 1000, 1) == float(row["total_kernel_us"])
    names = {signature.name for signature in rank.stats if signature.work == "kernel"}
    assert len(names) == int(row["distinct_kernels"])
    assert len(rank.replays.kernels_per_launch) == int(row["graph_launches"])
    assert rank.info.vendor == row["vendor"]


@pytest.mark.parametrize("name", [name for name in KINETO if name not in LARGE])
def test_columns_equal_the_reference_reader(shared, name):
    path = shared / "traces" / name
    (rank,) = read_trace(path).ranks
    assert columns(rank) == rows(load(path))


@pytest.mark.parametrize("name", [name for name in KINETO if name not in LARGE])
def test_stats_are_the_sums_of_the_columns(shared, name):
    (rank,) = read_trace(shared / "traces" / name).ranks
    table = rank.kernels
    assert table is not None
    durations: dict[int, list[int]] = {}
    for number, duration in zip(table.signature_id, table.duration_ns, strict=True):
        durations.setdefault(number, []).append(duration)
    assert [
        (stats.count, stats.time_ns, stats.min_ns, stats.max_ns) for stats in rank.stats.values()
    ] == [
        (len(members), sum(members), min(members), max(members))
        for _, members in sorted(durations.items())
    ]


def test_files_whose_external_id_is_the_correlation_are_linked_by_enclosure(shared):
    (rank,) = read_trace(shared / "traces" / "sglang_dsv3_decode_h200" / "rank0.json").ranks
    assert ("linking", "enclosure") in rank.info.properties
    assert any(signature.op for signature in rank.stats)


def test_context_names_functions_ops_and_shapes(shared):
    path = shared / "traces" / "sglang_qwen3_8b_prefill_decode_mi300.json.gz"
    (rank,) = read_trace(path, context=True).ranks
    (plain,) = read_trace(path).ranks
    assert plain.stats == rank.stats
    assert not plain.context
    assert ("aiter/tuned_gemm.py", 395, "torch_gemm") in rank.fingerprint
    gemm = next(signature for signature in rank.stats if signature.op == "aten::mm")
    context = rank.context[gemm]
    assert context.op_stacks[0][-1] == "aten::mm"
    innermost = [use for use in context.frames if use.depth == 0]
    assert sum(use.launches for use in innermost) == rank.stats[gemm].count
    assert context.shapes


def test_a_replayed_kernel_has_no_stack_though_the_replay_has(shared):
    path = shared / "traces" / "sglang_dense_decode_mi300.json.gz"
    (rank,) = read_trace(path, context=True).ranks
    replayed = [signature for signature in rank.stats if signature.replayed]
    assert replayed
    assert not any(rank.context[signature].frames for signature in replayed)
    assert any("cuda_graph_runner" in frame[0] for frame in rank.fingerprint)
