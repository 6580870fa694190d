"""Real SGLang from the package index: where its casts are, and what became of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.core.proposals import Evidence, RunContext
from agent.source.index import GitSourceIndex, open_sources
from tests.builders import ruleset
from tests.unit.source.conftest import codes
from tests.wheels import commit_wheel

PATH = "sglang/srt/layers/attention/aiter_backend.py"
POOL = "sglang/srt/mem_cache/memory_pool.py"
ROCM = RunContext("rocm", "gfx942", "aiter", "MLA")
FROM_FP8 = (
    "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl<"
    "at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(c10::BFloat16)#1}>>(int)"
)
READ_DTYPES = ("c10::BFloat16", "c10::Float8_e4m3fnuz")


@pytest.fixture(scope="module")
def sglang_wheel(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Path, str, GitSourceIndex]]:
    """The wheel 0.5.11 in a scratch checkout: its folder, commit and index."""
    folder = tmp_path_factory.mktemp("sglang")
    commit = commit_wheel(folder, "0.5.11")
    index = open_sources([("sglang", folder)])
    yield folder, commit, index
    index.close()


def pinned_cast(index: GitSourceIndex, commit: str, lines: tuple[int, int]) -> Evidence:
    entry = Evidence("emission", "sglang", commit, PATH, lines)
    found = index.examine(
        (entry,), names=(FROM_FP8,), category="CastFromFP8", context=RunContext(), pattern=""
    )
    return found.evidence[0]


def test_the_read_cast_of_the_wheel_is_found_and_proven(
    sglang_wheel: tuple[Path, str, GitSourceIndex],
) -> None:
    from agent.core.proposals import Proposal
    from agent.review.gate import judge_proposal

    _, _, index = sglang_wheel
    best = index.shortlist(FROM_FP8, op="aten::copy_", input_dtypes=READ_DTYPES, context=ROCM)[0]
    (entry,) = best.evidence
    assert (entry.path, entry.lines) == (PATH, (2159, 2160))
    assert (entry.symbol, entry.guard) == (
        "AiterAttnBackend.forward_extend",
        "self.kv_cache_dtype == fp8_dtype",
    )
    proposal = Proposal(
        "0" * 16, "CastFromFP8", "direct_copy_kernel_cuda", best.evidence, "^aten::copy_$",
        READ_DTYPES, (FROM_FP8,),
    )  # fmt: skip
    verdict = judge_proposal(proposal, ruleset=ruleset(), names={}, source=index, context=ROCM)
    assert (codes(verdict), verdict.level) == ([], "L3")


def test_the_write_cast_of_the_wheel_is_in_the_pool_of_latent_attention(
    sglang_wheel: tuple[Path, str, GitSourceIndex],
) -> None:
    _, _, index = sglang_wheel
    name = (
        "void at::native::x<at::native::float8_copy_kernel_cuda(at::T&)::{lambda(c10::BFloat16)#3}>"
    )
    best = index.shortlist(name, context=ROCM)[0]
    (entry,) = best.evidence
    assert (entry.path, entry.symbol) == (POOL, "MLATokenToKVPool.set_kv_buffer")
    assert entry.guard == "cache_k.dtype != self.dtype"


def test_a_line_of_another_version_is_no_evidence(
    sglang_wheel: tuple[Path, str, GitSourceIndex],
) -> None:
    _, commit, index = sglang_wheel
    for lines in ((1289, 1290), (2099, 2100), (2441, 2442), (1867, 1868)):
        assert pinned_cast(index, commit, lines).pin is None or "cast" in str(
            index.examine(
                (Evidence("emission", "sglang", commit, PATH, lines),), names=(FROM_FP8,),
                category="CastFromFP8", context=RunContext(),
            ).findings
        )  # fmt: skip


VERSIONS = [
    ("0.5.9", 1289, "MOVED_GUARDS_CHANGED"),
    ("0.5.10", 2099, "MOVED"),
    ("0.5.12", 2441, "MOVED"),
    ("0.5.13", 2171, "MOVED"),
    ("0.5.14", 2012, "MOVED_GUARDS_CHANGED"),
    ("0.5.23", 3894, "MOVED_GUARDS_CHANGED"),
]


@pytest.mark.skipif(
    "LABEL_AGENT_WHEELS" not in os.environ, reason="downloads six more wheels: LABEL_AGENT_WHEELS=1"
)
@pytest.mark.parametrize(("version", "line", "status"), VERSIONS)
def test_the_read_cast_is_found_again_in_other_versions(
    sglang_wheel: tuple[Path, str, GitSourceIndex],
    tmp_path: Path,
    version: str,
    line: int,
    status: str,
) -> None:
    _, commit, index = sglang_wheel
    entry = pinned_cast(index, commit, (2159, 2160))
    commit_wheel(tmp_path, version)
    found = open_sources([("sglang", tmp_path)]).verify(entry)
    assert found.status == status
    assert found.found is not None
    assert found.found.lines == (line, line + 1)


@pytest.mark.skipif(
    "LABEL_AGENT_WHEELS" not in os.environ, reason="downloads one more wheel: LABEL_AGENT_WHEELS=1"
)
def test_the_decode_cast_is_stale_after_0_5_11(
    sglang_wheel: tuple[Path, str, GitSourceIndex], tmp_path: Path
) -> None:
    _, commit, index = sglang_wheel
    entry = pinned_cast(index, commit, (2588, 2589))
    assert entry.pin is not None
    assert entry.pin.qualname == "AiterAttnBackend.forward_decode"
    commit_wheel(tmp_path, "0.5.12")
    assert open_sources([("sglang", tmp_path)]).verify(entry).status == "STALE"
