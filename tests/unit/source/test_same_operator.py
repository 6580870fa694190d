"""Packages that bind operators of one name: a call means that of the package it resolves to."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import dedent

import pytest

from agent.core.proposals import Evidence, RunContext
from agent.source.index import GitSourceIndex, open_sources
from tests.checkouts import commit_tree, line_of

CUDA = dedent("""\
    template <typename T>
    __global__ void act_and_mul_kernel(T* out) { *out = 0; }

    void silu_and_mul(void* out) { act_and_mul_kernel<float><<<1, 1>>>(nullptr); }
    """)
JIT = (
    CUDA.replace("silu_and_mul", "run").replace("void run", "struct ActKernel { static void run")
    + "};\n"
)
ALONE = "void gelu_and_mul(void* out) { act_and_mul_kernel<half><<<1, 1>>>(nullptr); }\n"
FASTLIB = {
    "setup.py": "",
    "csrc/act.cu": CUDA,
    "csrc/bind.cu": 'PYBIND11_MODULE(module_act, m) { m.def("silu_and_mul", &silu_and_mul); }\n',
    "fastlib/__init__.py": "from .ops.act import *\n",
    "fastlib/loader.py": "def compile_ops(module):\n    return lambda bound: bound\n",
    "fastlib/ops/__init__.py": "",
    "fastlib/ops/act.py": dedent("""\
        from ..loader import compile_ops


        @compile_ops("module_act")
        def silu_and_mul(out) -> None: ...
        """),
    "fastlib/moe.py": "import fastlib\n\n\ndef stage(x):\n    fastlib.silu_and_mul(x)\n",
}
SERVE = {
    "plain/pyproject.toml": "",
    "plain/csrc/act.cu": CUDA + ALONE,
    "plain/csrc/bind.cc": dedent("""\
        TORCH_LIBRARY_FRAGMENT(plain_ops, m) {
          m.def("silu_and_mul(Tensor! out) -> ()");
          m.impl("silu_and_mul", torch::kCUDA, &silu_and_mul);
          m.impl("gelu_and_mul", torch::kCUDA, &gelu_and_mul);
        }
        """),
    "plain/python/plain_ops/__init__.py": "from plain_ops.act import silu_and_mul\n",
    "plain/python/plain_ops/act.py": dedent("""\
        import torch


        def silu_and_mul(out):
            torch.ops.plain_ops.silu_and_mul.default(out)
        """),
    "python/pyproject.toml": "",
    "python/serve/__init__.py": "",
    "python/serve/jit/__init__.py": "",
    "python/serve/jit/csrc/act.cuh": JIT + ALONE,
    "python/serve/jit/act.py": dedent("""\
        from serve.jit.utils import load_jit


        def _module():
            return load_jit(
                cuda_files=["act.cuh"],
                cuda_wrappers=[("silu_and_mul", "ActKernel::run"), ("gelu_and_mul", "gelu_and_mul")],
            )


        def silu_and_mul(out):
            module = _module()
            module.silu_and_mul(out)
        """),
}  # fmt: skip
EITHER = """\
try:
    from plain_ops import silu_and_mul
except ImportError:
    from fastlib import silu_and_mul"""
KERNELS = {
    "fast": ("fastlib", "csrc/act.cu"),
    "plain": ("serve", "plain/csrc/act.cu"),
    "jit": ("serve", "python/serve/jit/csrc/act.cuh"),
}
CASES = {
    "imported from the one": ("from fastlib import silu_and_mul", "silu_and_mul(x)", "fast"),
    "through the one's package": ("import fastlib", "fastlib.silu_and_mul(x)", "fast"),
    "an operator of the one": ("import torch", "torch.ops.fastlib.silu_and_mul(x)", "fast"),
    "of the one's compiled module": ("from fastlib import _C", "_C.silu_and_mul(x)", "fast"),
    "imported from the other": ("from plain_ops import silu_and_mul", "silu_and_mul(x)", "plain"),
    "an operator of the other": ("import torch", "torch.ops.plain_ops.silu_and_mul(x)", "plain"),
    "of the other's compiled module": ("import plain_ops._C", "plain_ops._C.silu_and_mul(x)", "plain"),
    "imported from what compiles it while running": (
        "from serve.jit.act import silu_and_mul", "silu_and_mul(x)", "jit",
    ),
    "imported from either": (EITHER, "silu_and_mul(x)", "fast plain"),
    "an operator of a function defined twice": (
        "import torch", "torch.ops.plain_ops.gelu_and_mul(x)", "plain",
    ),
    "an operator that only others bind": (
        "import torch", "torch.ops.fastlib.gelu_and_mul(x)", "jit plain",
    ),
    "an operator of no package here": (
        "import torch", "torch.ops.absent.silu_and_mul(x)", "fast jit plain",
    ),
}  # fmt: skip


def _case_path(name: str) -> str:
    return f"python/serve/{name.translate({ord(mark): '_' for mark in ' ' + chr(39)})}.py"


@pytest.fixture(scope="module")
def checkouts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitSourceIndex]:
    folder = tmp_path_factory.mktemp("same")
    called = {
        _case_path(name): f"{head}\n\n\ndef run_case(x):\n    {call}\n"
        for name, (head, call, _) in CASES.items()
    }
    modules = [
        path.removeprefix("python/").removesuffix(".py").replace("/", ".") for path in called
    ]
    uses = "from fastlib.moe import stage\nfrom serve.jit.act import silu_and_mul\n" + "".join(
        f"from {module} import run_case as run_{number}\n" for number, module in enumerate(modules)
    )
    commit_tree(folder / "serve", {**SERVE, **called, "python/serve/main.py": uses})
    commit_tree(folder / "fastlib", FASTLIB)
    index = open_sources([(name, folder / name) for name in ("serve", "fastlib")])
    yield index
    index.close()


def led_to(index: GitSourceIndex, repo: str, path: str, line: int) -> str:
    """Name the kernels that a call is taken to be an emission of."""
    commits = {one.name: one.commit for one in index.repos()}
    found = []
    for kernel, (home, source) in KERNELS.items():
        defined = (line_of(CUDA, "__global__"),) * 2
        evidence = (
            Evidence("definition", home, commits[home], source, defined),
            Evidence("emission", repo, commits[repo], path, (line, line)),
        )
        said = index.examine(
            evidence, names=("act_and_mul_kernel",), category="ActMul", context=RunContext()
        )
        refused = {one.code for one in said.findings if one.location.startswith(path)}
        assert refused <= {"E_NO_MATCHING_NODE"}, said.findings
        if not refused:
            found.append(kernel)
    return " ".join(sorted(found))


@pytest.mark.parametrize("name", CASES)
def test_a_call_means_the_operator_of_the_package_it_resolves_to(
    checkouts: GitSourceIndex, name: str
) -> None:
    head, _, expected = CASES[name]
    assert led_to(checkouts, "serve", _case_path(name), head.count("\n") + 5) == expected


@pytest.mark.parametrize(
    ("repo", "path", "part", "expected"),
    [
        ("fastlib", "fastlib/moe.py", "fastlib.silu_and_mul(", "fast"),
        ("serve", "plain/python/plain_ops/act.py", "torch.ops", "plain"),
        ("serve", "python/serve/jit/act.py", "module.silu_and_mul(", "jit"),
    ],
)
def test_a_package_calls_its_own_operator(
    checkouts: GitSourceIndex, repo: str, path: str, part: str, expected: str
) -> None:
    line = line_of({**FASTLIB, **SERVE}[path], part)
    assert led_to(checkouts, repo, path, line) == expected
