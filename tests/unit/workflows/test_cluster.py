"""A run read on a Dask cluster is the run read here, also when workers die on the way."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.core.kernels import Trace
from agent.errors import TraceError, UsageError
from agent.traces.profile import write_profile
from agent.traces.reader import read_trace
from agent.workflows import cluster
from agent.workflows.cluster import label_on_cluster, read_on_cluster
from tests.builders import rule, ruleset

distributed = pytest.importorskip("distributed", reason="the extra 'dask' is not installed")
pytestmark = pytest.mark.block_network(allowed_hosts=[r"127\.0\.0\.1", "localhost"])

WORLD = 64


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0", host="127.0.0.1"
        ) as local,
        distributed.Client(local, set_as_default=False) as connected,
    ):
        yield connected


def rank_json(rank: int) -> str:
    """A rank whose figures differ from those of every other."""
    events = [
        {
            "ph": "X",
            "cat": "kernel",
            "name": name,
            "ts": 10 * at,
            "dur": at + rank % 7 + 1,
            "args": {"device": rank % 8, "stream": 7, "correlation": at},
        }
        for at, name in enumerate(["moe_gemm1_0", "rmsnorm", f"only_on_{rank % 5}", "rmsnorm"])
    ]
    info = {"backend": "nccl", "rank": rank, "world_size": WORLD}
    return json.dumps({"distributedInfo": info, "traceEvents": events})


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run") / "decode"
    folder.mkdir()
    for rank in range(WORLD):
        (folder / f"rank{rank}.json").write_text(rank_json(rank), encoding="utf-8")
    return folder


def without_events(trace: Trace) -> Trace:
    bare = tuple(dataclasses.replace(rank, kernels=None) for rank in trace.ranks)
    return dataclasses.replace(trace, ranks=bare)


def test_sixty_four_ranks_give_the_same_bytes_as_here(client: Any, ranks: Path) -> None:
    here = without_events(read_trace(ranks))
    there = read_on_cluster([str(ranks)], client=client)
    assert len(there.ranks) == WORLD
    assert write_profile(there) == write_profile(here)
    assert there == here


def test_a_worker_that_is_killed_on_the_way_changes_nothing(client: Any, ranks: Path) -> None:
    victims = list(client.run(os.getpid).values())
    finished: list[str] = []

    def kill_one(progress: Any) -> None:
        if not finished:
            os.kill(victims[0], signal.SIGKILL)
        finished.append(progress.source)

    there = read_on_cluster([str(ranks)], client=client, progress=kill_one)
    assert sorted(finished) == sorted(f"rank{rank}.json" for rank in range(WORLD))
    assert write_profile(there) == write_profile(without_events(read_trace(ranks)))
    client.wait_for_workers(2, timeout=60)
    assert victims[0] not in client.run(os.getpid).values()


def test_labels_are_those_of_the_run_read_here(client: Any, ranks: Path) -> None:
    from agent.ruleset.match import label_trace

    rules = ruleset(rule())
    here = label_trace(read_trace(ranks), rules)
    there = label_on_cluster([str(ranks)], rules, client=client)
    assert there.categories == here.categories
    assert there.coverage == here.coverage
    assert there.labels == here.labels


def test_a_missing_rank_and_a_damaged_one_are_named_as_here(client: Any, tmp_path: Path) -> None:
    for rank in (0, 1, 2):
        (tmp_path / f"rank{rank}.json").write_text(rank_json(rank), encoding="utf-8")
    (tmp_path / "rank3.json").write_text(rank_json(3)[:-40], encoding="utf-8")
    (tmp_path / "notes.txt").write_text("warm-up: 10 requests", encoding="utf-8")
    for salvage in (False, True):
        here = without_events(read_trace(tmp_path, salvage=salvage))
        assert read_on_cluster([str(tmp_path)], client=client, salvage=salvage) == here
        assert not here.complete


def test_a_copy_of_a_rank_counts_once_as_here(client: Any, tmp_path: Path) -> None:
    for name in ("rank0.json", "again.json"):
        (tmp_path / name).write_text(rank_json(0), encoding="utf-8")
    here = without_events(read_trace(tmp_path))
    assert len(here.ranks) == 1
    assert read_on_cluster([str(tmp_path)], client=client) == here


def test_other_formats_and_profiles_are_read_as_here(
    client: Any, shared: Path, tmp_path: Path
) -> None:
    traces = shared / "traces"
    profile = tmp_path / "run.profile"
    profile.write_bytes(write_profile(read_trace(traces / "sglang_dense_decode_mi300.json.gz")))
    for path in (
        profile,
        *(traces / name for name in ("mixtral_mi300_rank0.rpd", "qwen15_mi300.json.gz")),
    ):
        assert read_on_cluster([str(path)], client=client) == without_events(read_trace(path))


def test_a_single_damaged_file_is_the_error_it_is_here(client: Any, tmp_path: Path) -> None:
    path = tmp_path / "rank0.json"
    path.write_text('{"traceEvents": [{"ph": "X"', encoding="utf-8")
    with pytest.raises(TraceError) as here:
        read_trace(path)
    with pytest.raises(TraceError) as there:
        read_on_cluster([str(path)], client=client)
    assert (str(there.value), there.value.hint) == (str(here.value), here.value.hint)
    assert type(there.value) is type(here.value)


def test_a_local_url_is_a_local_path(client: Any, ranks: Path) -> None:
    here = without_events(read_trace(ranks))
    assert read_on_cluster([f"file://{ranks}"], client=client) == here


@pytest.mark.parametrize("pattern", ["", "/*.json"])
def test_urls_of_another_file_system_are_read(client: Any, ranks: Path, pattern: str) -> None:
    here = read_trace(ranks)
    there = read_on_cluster([f"simplecache::file://{ranks}{pattern}"], client=client)
    assert there.stats == here.stats
    assert [rank.info.source for rank in there.ranks] == [rank.info.source for rank in here.ranks]


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("simplecache::file:///no/such/run", "TR001"),
        ("nothing://bucket/run", "TR013"),
        ("/no/such", "TR001"),
    ],
)
def test_a_url_that_leads_nowhere_is_an_error(client: Any, url: str, code: str) -> None:
    with pytest.raises(TraceError, match=code):
        read_on_cluster([url], client=client)


def test_a_worker_of_another_version_is_refused(
    client: Any, ranks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.__version__", "999")
    with pytest.raises(UsageError, match="TR081 a worker has label-agent"):
        read_on_cluster([str(ranks / "rank0.json")], client=client)


def test_a_scheduler_that_is_not_there_is_an_error(
    ranks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "_PATIENCE", "0.2s")
    with pytest.raises(UsageError, match="TR081"):
        read_on_cluster([str(ranks)], client="tcp://127.0.0.1:1")


def test_without_dask_the_error_says_how_to_install_it(
    ranks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UsageError, match="TR080") as caught:
        read_on_cluster([str(ranks)])
    assert "label-agent[dask]" in caught.value.hint


def test_a_file_that_kills_its_workers_is_an_error_of_that_file(ranks: Path) -> None:
    class Lost:
        def exception(self) -> Exception:
            return distributed.scheduler.KilledWorker("read", "worker", 3)

    file = cluster.RemoteFile("/x", "x", "run/x")
    error = cluster._outcome(Lost(), file).error
    assert error is not None
    assert error[1:3] == ("TR081", "the cluster gave it up: KilledWorker")


def test_without_a_client_a_cluster_of_processes_is_opened_and_closed(ranks: Path) -> None:
    path = ranks / "rank3.json"
    assert read_on_cluster([str(path)]) == without_events(read_trace(path))
    with pytest.raises(ValueError, match="No client"):
        distributed.default_client()
