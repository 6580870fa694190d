"""A kernel's definition counts where it is the one that a run gets."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.core.proposals import Evidence, RunContext
from agent.source.index import open_sources
from tests.checkouts import commit_tree, line_of

JIT = "@triton.jit\ndef scale_kernel(x):\n    pass\n"
INNER = "    @triton.jit\n    def scale_kernel(x):\n        pass\n"
LAUNCH = "from server.kernels import scale_kernel\n\n\ndef run(x):\n    scale_kernel[(1,)](x)\n"
ROCM = RunContext("rocm", "gfx942")


def examined(folder: Path, kernels: str, ops: str = LAUNCH, nth: int = 1) -> set[str]:
    """Examine the nth definition of a kernel, launched from another file."""
    text = f"import triton\n\n\n{kernels}"
    files = {
        "server/__init__.py": "", "server/kernels.py": text, "server/ops.py": ops,
        "server/main.py": "from server.ops import run\n\nrun(1)\n",
    }  # fmt: skip
    commit = commit_tree(folder / "server", files)
    places = {
        "definition": ("server/kernels.py", line_of(text, "def scale_kernel", nth)),
        "emission": ("server/ops.py", line_of(ops, "[(1,)](x)")),
    }
    evidence = tuple(
        Evidence(kind, "server", commit, path, (line, line))  # type: ignore[arg-type]
        for kind, (path, line) in places.items()
    )
    index = open_sources([("server", folder / "server")])
    found = index.examine(evidence, names=("scale_kernel",), category="Elementwise", context=ROCM)
    return {one.code for one in found.findings if one.severity == "error"} - {"E_MISSING_EVIDENCE"}


@pytest.mark.parametrize(
    ("kernels", "code"),
    [
        pytest.param(f"if False:\n{INNER}", "E_UNREACHABLE", id="in a dead branch"),
        pytest.param(f"if TYPE_CHECKING:\n{INNER}", "E_UNREACHABLE", id="for a type checker"),
        pytest.param(
            f"try:\n    import fast\nexcept ImportError:\n{INNER}", "E_UNREACHABLE",
            id="for a missing module",
        ),
        pytest.param(f"{JIT}\n\n{JIT}", "E_UNREACHABLE", id="defined again"),
        pytest.param(f"if is_cuda():\n{INNER}", "E_BACKEND_MISMATCH", id="for another vendor"),
        pytest.param(f"if is_npu():\n{INNER}", "E_BACKEND_MISMATCH", id="for no GPU"),
    ],
)  # fmt: skip
def test_a_definition_no_run_gets_is_none(tmp_path: Path, kernels: str, code: str) -> None:
    assert examined(tmp_path, kernels) == {code}


@pytest.mark.parametrize(
    ("kernels", "nth"),
    [
        pytest.param(JIT, 1, id="plainly"),
        pytest.param(f"{JIT}\n\n{JIT}", 2, id="the later of two"),
        pytest.param(f"if is_hip():\n{INNER}", 1, id="for this vendor"),
        pytest.param(f"if has_fast:\n    from fast import scale_kernel\nelse:\n{INNER}", 1, id="else"),
        pytest.param(f"@triton.autotune([], [])\n{JIT}", 1, id="tuned"),
    ],
)  # fmt: skip
def test_a_definition_a_run_may_get_counts(tmp_path: Path, kernels: str, nth: int) -> None:
    assert examined(tmp_path, kernels, nth=nth) == set()


def test_a_kernel_within_a_function_cannot_be_imported(tmp_path: Path) -> None:
    made = f"def make():\n{INNER}    return scale_kernel\n"
    assert examined(tmp_path, made) == {"E_NO_MATCHING_NODE"}


@pytest.mark.parametrize("other", ["other_kernel", "wider.other_kernel"])
def test_a_kernel_chosen_within_brackets_is_launched(tmp_path: Path, other: str) -> None:
    ops = (
        "from server.kernels import scale_kernel\n\n\ndef run(x):\n    kernel = (\n"
        f"        {other}\n        if x\n        else scale_kernel\n    )\n    kernel[(1,)](x)\n"
    )
    assert examined(tmp_path, JIT, ops) == set()
