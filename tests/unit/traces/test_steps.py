"""Steps that were annotated, and where they ran on the GPU."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from agent.core.kernels import Step
from agent.traces.reader import read_trace
from agent.traces.steps import Annotation, Launched, is_step, place_steps


def launched_events(*columns: tuple[int, ...]) -> Launched:
    return Launched(*(np.array(column, np.int64) for column in columns))


NOTHING = launched_events((), (), (), ())


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("aten::mm", False),
        ("stepwise_attention", False),
        ("model_inference", False),
        ("iterate", False),
        ("execute_model", False),
        ("ProfilerStep", False),
        ("ProfilerStep#3", True),
        ("step[DECODE bs=16]", True),
        ("execute_16_context_0(sq0sk0)_generation_16(sq16sk8209)", True),
        ("execute_context_1(128)_generation_0(0)", True),
        ("Iteration 12", True),
        ("step_7", True),
    ],
)
def test_steps_are_told_by_what_serving_stacks_call_them(name, step):
    assert is_step(name) is step


def test_a_step_runs_where_its_launches_run():
    """The host is ahead: the second step was launched while the first still ran."""
    host = [Annotation(0, 10, "step[EXTEND]"), Annotation(10, 20, "step[DECODE]")]
    launched = launched_events((100, 150, 200, 300), (50, 40, 30, 5), (2, 9, 12), (0, 1, 2, -1))
    assert place_steps(host, launched, 100) == (
        Step("step[EXTEND]", 0, 90),
        Step("step[DECODE]", 100, 130),
    )


def test_a_step_that_launched_nothing_is_none():
    host = [Annotation(0, 10, "ProfilerStep#1"), Annotation(10, 20, "ProfilerStep#2")]
    steps = place_steps(host, launched_events((100,), (5,), (12,), (0,)), 0)
    assert [step.name for step in steps] == ["ProfilerStep#2"]


def test_a_step_on_two_streams_is_one_step():
    """Kineto copies an annotation to each stream its kernels ran on."""
    copies = [
        Annotation(start, start + length, "step[DECODE bs=16]", stream)
        for start in (100, 200)
        for stream, length in (("0 7", 80), ("0 13", 20))
    ]
    steps = place_steps(copies, NOTHING, 100)
    assert [(step.start_ns, step.end_ns) for step in steps] == [(0, 80), (100, 180)]


def test_one_kind_of_annotation_is_counted():
    nested = [Annotation(0, 50, "execute_8_context_0(0)_generation_8(8)")]
    nested += [Annotation(10, 40, "step[DECODE bs=8]")]
    assert [step.name for step in place_steps(nested, NOTHING, 0)] == ["step[DECODE bs=8]"]


def test_host_times_stand_where_there_is_nothing_else():
    host = [Annotation(10, 20, "ProfilerStep#1")]
    assert place_steps(host, NOTHING, 5) == (Step("ProfilerStep#1", 5, 15),)


def event(cat: str, name: str, ts: int, dur: int, tid: int, **args: int) -> dict[str, object]:
    return {
        "ph": "X",
        "cat": cat,
        "name": name,
        "ts": ts,
        "dur": dur,
        "pid": 1,
        "tid": tid,
        "args": args,
    }


def test_steps_of_a_file_without_copies_on_the_gpu_are_cut_by_their_launches(tmp_path: Path):
    """As ROCm writes them: the decode step's kernel starts after the host's step is over."""
    events = [
        event("user_annotation", "step[EXTEND bs=1 toks=9]", 0, 10, 5),
        event("user_annotation", "step[DECODE bs=1]", 10, 10, 5),
        event("cuda_runtime", "hipLaunchKernel", 1, 1, 5, correlation=1),
        event("cuda_runtime", "hipLaunchKernel", 11, 1, 5, correlation=2),
        event("kernel", "prefill", 5, 95, 7, correlation=1, device=0, stream=7),
        event("kernel", "decode", 100, 10, 7, correlation=2, device=0, stream=7),
    ]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
    [rank] = read_trace(path).ranks
    assert rank.steps == (
        Step("step[EXTEND bs=1 toks=9]", 0, 95_000),
        Step("step[DECODE bs=1]", 95_000, 105_000),
    )


def test_a_kernel_without_a_time_does_not_stretch_its_step(tmp_path: Path):
    at = 1_700_000_000_000_000
    events = [
        event("user_annotation", "ProfilerStep#1", at, 100, 5),
        *(event("cuda_runtime", "cudaLaunchKernel", at + n, 1, 5, correlation=n) for n in (1, 2)),
        event("kernel", "timed", at + 30, 5, 7, correlation=1, device=0, stream=7),
        event("kernel", "timeless", 0, 5, 7, correlation=2, device=0, stream=7),
    ]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
    [rank] = read_trace(path).ranks
    assert rank.steps == (Step("ProfilerStep#1", 0, 5_000),)
