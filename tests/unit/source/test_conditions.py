"""Preprocessor conditions that keep native source for one vendor."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from agent.core.proposals import Evidence, RunContext
from agent.source.index import open_sources
from agent.source.native.conditions import vendor_at
from tests.checkouts import commit_tree, line_of

CODE = dedent("""\
    int everywhere;
    #ifdef USE_ROCM
    int on_rocm;
    #else
    int not_on_rocm;
    #endif
    #ifndef USE_ROCM
    int no_rocm;
    #elif defined(OTHER)
    int with_rocm;
    #endif
    #if !defined(__HIPCC__)
    #if FAST
    int within;
    #endif
    #endif
    #if defined(USE_ROCM) && FAST
    int unclear;
    #else
    int unclear_too;
    #endif
    #if USE_CUDA
    int on_cuda;
    #endif
    #ifndef HEADER_H
    int guarded;
    #endif
    #endif
    int after;
    """)


@pytest.mark.parametrize(
    ("name", "vendor"),
    [
        ("everywhere", ""), ("on_rocm", "rocm"), ("not_on_rocm", "cuda"), ("no_rocm", "cuda"),
        ("with_rocm", "rocm"), ("within", "cuda"), ("unclear", ""), ("unclear_too", ""),
        ("on_cuda", "cuda"), ("guarded", ""), ("after", ""),
    ],
)  # fmt: skip
def test_a_place_is_for_the_vendor_its_branch_is_compiled_for(name: str, vendor: str) -> None:
    assert vendor_at(CODE.encode(), CODE.index(f"int {name};")) == vendor


NATIVE = dedent("""\
    #ifdef USE_ROCM
    __global__ void hip_kernel(int* x) {}
    #else
    __global__ void cuda_kernel(int* x) {}
    #endif
    __global__ void scale_kernel(int* x) {}
    void scale(int* x) {
      hip_kernel<<<1, 1>>>(x);
    #ifdef USE_ROCM
      scale_kernel<<<1, 64>>>(x);
    #else
      scale_kernel<<<1, 32>>>(x);
      cuda_kernel<<<1, 32>>>(x);
    #endif
    }
    PYBIND11_MODULE(ops, m) { m.def("scale", &scale); }
    """)


@pytest.mark.parametrize(
    ("kernel", "launch", "admitted"),
    [
        ("scale_kernel", "1, 64", True),
        ("scale_kernel", "1, 32", False),
        ("hip_kernel", "hip_kernel<<<", True),
        ("cuda_kernel", "cuda_kernel<<<", False),
    ],
)
def test_what_is_compiled_for_another_vendor_is_no_evidence(
    tmp_path: Path, kernel: str, launch: str, *, admitted: bool
) -> None:
    files = {"csrc/scale.cu": NATIVE, "setup_rocm.py": 'sources = ["csrc/scale.cu"]\n'}
    commit = commit_tree(tmp_path / "server", files)
    lines = (line_of(NATIVE, f"void {kernel}("), line_of(NATIVE, launch))
    evidence = tuple(
        Evidence(kind, "server", commit, "csrc/scale.cu", (line, line))  # type: ignore[arg-type]
        for kind, line in zip(("definition", "emission"), lines, strict=True)
    )
    index = open_sources([("server", tmp_path / "server")])
    found = index.examine(
        evidence,
        names=(f"void {kernel}(int*)",),
        category="Elementwise",
        context=RunContext("rocm"),
    )
    assert found.complete == admitted, found.findings
    assert admitted or "E_BACKEND_MISMATCH" in {one.code for one in found.findings}
