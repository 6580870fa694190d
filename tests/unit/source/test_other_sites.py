"""Several places may launch one kernel; only a stack tells which did, so the others are named."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from agent.core.kernels import FrameUse, LaunchContext, RankTrace, Trace, TraceInfo
from agent.core.proposals import Evidence, Proposal, RunContext, Verdict
from agent.proposing.dossier import dossier_of
from agent.proposing.families import rank_families
from agent.proposing.offline import propose_offline
from agent.review.gate import judge_proposal
from agent.ruleset.match import label_trace
from agent.source.index import GitSourceIndex, open_sources
from tests.builders import ruleset, signature, stats, trace
from tests.checkouts import commit_tree

ROCM = RunContext("rocm", "gfx942")
KERNEL = "rms_norm_rows_kernel"
OPS = "engine/srt/ops.py"
NATIVE = "csrc/scale.cu"
PYTHON = dedent("""\
    import triton


    @triton.jit
    def rms_norm_rows_kernel(x):
        pass


    def first(x):
        rms_norm_rows_kernel[(1,)](x)


    def second(x):
        launch = rms_norm_rows_kernel
        launch[(1,)](x)


    def third(x):
        if False:
            rms_norm_rows_kernel[(1,)](x)
        rms_norm_rows_kernel[(2,)](x)


    def nobody(x):
        rms_norm_rows_kernel[(3,)](x)
    """)
MODEL = "from engine.srt.ops import first, second, third\n\n\ndef forward(x):\n" + "".join(
    f"    {name}(x)\n" for name in ("first", "second", "third")
)
TEST = "from engine.srt.ops import rms_norm_rows_kernel\n\n\ndef test_it(x):\n    rms_norm_rows_kernel[(1,)](x)\n"
BUILT = 'sources = ["csrc/scale.cu"]\n'
CUDA = dedent("""\
    __global__ void rms_norm_rows_kernel(float* x) { x[0] = 1; }
    void narrow(float* x) { rms_norm_rows_kernel<<<1, 64>>>(x); }
    void wide(float* x) { rms_norm_rows_kernel<<<2, 64>>>(x); }
    PYBIND11_MODULE(ops, m) { m.def("narrow", &narrow); m.def("wide", &wide); }
    """)
BINDING = 'm.def("scale_rows", &scale_rows);\n'


def _index(folder: Path, files: dict[str, str]) -> tuple[GitSourceIndex, str]:
    commit = commit_tree(folder / "serve", {**files, "engine/srt/model.py": MODEL})
    return open_sources([("serve", folder / "serve")]), commit


def _judged(
    source: GitSourceIndex, commit: str, path: str, *lines: int, run: Trace | None = None
) -> Verdict:
    kinds = ("definition", "emission")
    evidence = tuple(
        Evidence(kind, "serve", commit, path, (line, line))  # type: ignore[arg-type]
        for kind, line in zip(kinds, lines, strict=True)
    )
    proposal = Proposal("1", "RMSNorm", f"^{KERNEL}$", evidence, kernels=(KERNEL,))
    verdict = judge_proposal(
        proposal, ruleset=ruleset(), names={}, source=source, context=ROCM, trace=run
    )
    assert verdict.admitted, verdict.findings
    return verdict


def _said(verdict: Verdict) -> list[str]:
    return [one.message for one in verdict.findings if one.code == "E_OTHER_SITES"]


def test_other_launches_of_the_kernel_are_counted_and_named(tmp_path: Path) -> None:
    """Not those that never run: behind a false condition, used by nobody, in a test."""
    source, commit = _index(tmp_path, {OPS: PYTHON, "tests/test_ops.py": TEST})
    [said] = _said(_judged(source, commit, OPS, 5, 10))
    assert said == (
        "2 other places launch it as directly, and no stack tells which ran: "
        f"{OPS}:15 (second), {OPS}:21 (third)"
    )
    [other] = _said(_judged(source, commit, OPS, 5, 15))
    assert other.endswith(f": {OPS}:10 (first), {OPS}:21 (third)")


def test_a_single_launch_is_not_remarked_on(tmp_path: Path) -> None:
    only = PYTHON[: PYTHON.index("def second")]
    source, commit = _index(tmp_path, {OPS: only})
    assert _said(_judged(source, commit, OPS, 5, 10)) == []


def test_a_stack_that_tells_the_place_needs_no_others(tmp_path: Path) -> None:
    source, commit = _index(tmp_path, {OPS: PYTHON})
    ran = signature(KERNEL)
    frame = FrameUse(f"/opt/{OPS}", 9, "first", 0, 4)
    seen = frozenset({(frame.path, 9, "first")})
    context = {ran: LaunchContext((frame,))}
    info = TraceInfo("t.json", "kineto")
    rank = RankTrace("0", info, {ran: stats(4, 4_000)}, context=context, fingerprint=seen)
    assert _said(_judged(source, commit, OPS, 5, 10, run=Trace("run", (rank,)))) == []


def test_what_is_proposed_offline_without_stacks_says_what_else_may_launch_it(
    tmp_path: Path,
) -> None:
    source, _ = _index(tmp_path, {OPS: PYTHON})
    run = label_trace(trace({signature(KERNEL): stats()}), ruleset())
    [family] = rank_families(run)
    found = source.shortlist(KERNEL, context=ROCM)
    dossier = dossier_of(family, run.trace, lambda *_: found, ROCM)
    first, *_ = propose_offline(dossier, {"RMSNorm"})
    assert isinstance(first, Proposal)
    verdict = judge_proposal(
        first, ruleset=ruleset(), names={}, source=source, context=ROCM, trace=run.trace
    )
    assert verdict.admitted
    assert [said.partition(":")[0] for said in _said(verdict)] == [
        "2 other places launch it as directly, and no stack tells which ran"
    ]


def test_more_places_than_can_be_read_are_only_counted(tmp_path: Path) -> None:
    many = "".join(f"\n\ndef f{n:02}(x):\n    rms_norm_rows_kernel[(1,)](x)\n" for n in range(30))
    calls = "".join(f"    f{n:02}(x)\n" for n in range(30))
    own = PYTHON[: PYTHON.index("def second")] + many
    source, commit = _index(tmp_path, {OPS: own, "engine/run.py": f"def run(x):\n{calls}"})
    [said] = _said(_judged(source, commit, OPS, 5, 10))
    assert said.startswith("30 other places launch it as directly")
    assert said.endswith(" and 18 more")
    assert said.count(f"{OPS}:") == 12


def test_launches_in_native_source_are_named_too(tmp_path: Path) -> None:
    source, commit = _index(tmp_path, {NATIVE: CUDA, "setup_rocm.py": BUILT})
    [said] = _said(_judged(source, commit, NATIVE, 1, 2))
    assert said.endswith(f"which ran: {NATIVE}:3 (wide)")


@pytest.mark.parametrize("cited", ["first", "second"])
def test_other_calls_of_the_same_function_are_named(tmp_path: Path, cited: str) -> None:
    """A kernel reached through a binding: every call of the bound function is as near."""
    bound = CUDA.replace("narrow", "scale_rows")
    calls = "import ops\n\n\ndef first(x):\n    ops.scale_rows(x)\n\n\ndef second(x):\n    ops.scale_rows(x)\n"
    files = {NATIVE: bound + BINDING, "setup_rocm.py": BUILT, OPS: calls}
    source, commit = _index(tmp_path, files)
    line = {"first": 5, "second": 9}[cited]
    evidence = (
        Evidence("definition", "serve", commit, NATIVE, (1, 1)),
        Evidence("emission", "serve", commit, OPS, (line, line)),
    )
    proposal = Proposal("1", "RMSNorm", f"^{KERNEL}$", evidence, kernels=(KERNEL,))
    verdict = judge_proposal(proposal, ruleset=ruleset(), names={}, source=source, context=ROCM)
    assert verdict.admitted, verdict.findings
    [said] = _said(verdict)
    assert said.startswith("1 other place launches it as directly")
    assert said.endswith({"first": f"{OPS}:9 (second)", "second": f"{OPS}:5 (first)"}[cited])
