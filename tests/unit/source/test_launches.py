"""Launches in HIP and CUDA: which lines are one, of which kernel, and what may lead to them."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from agent.core.proposals import Evidence, Finding, RunContext
from agent.core.source import Examination
from agent.source.index import open_sources
from agent.source.names import origin_of
from agent.source.native.sites import native_region
from agent.source.native.structure import native_file
from agent.source.reach import native_callers
from agent.source.snapshot import SourceFile
from tests.checkouts import commit_tree, line_of

NATIVE = dedent("""\
    void plain(int* x) {
      one_kernel<float, 4>
          <<<grid, block, 0, stream>>>(x);
    }
    void chained(int* x) {
      host::LaunchKernel(grid, block, device)(
          two_kernel<true>,
          x);
    }
    void chained_twice(int* x) {
      Launch(grid, block).enable_pdl(true)(three_kernel<true>, x);
    }
    void extended(int* x) {
      setAttribute(four_kernel<float>, Shared, 4);
      cudaLaunchKernelEx(
          &config,
          four_kernel<float>,
          x);
    }
    void aliased(int* x) {
      auto kernel = &five_kernel<float>;
      kernel<<<grid, block>>>(x);
    }
    void other(int* x) {
      auto kernel = &six_kernel<float>;
      kernel<<<grid, block>>>(x);
    }
    #define KL(name) name<<<grid, block>>>(x)
    #define DISPATCH(name) { if (wide) KL(name##_wide); else KL(name); }
    void by_macro(int* x) {
      DISPATCH(seven_kernel);
    }
    """)


def region(part: str, nth: int = 1) -> set[str]:
    """Give the kernels launched on the line that holds a text."""
    file = SourceFile("repo", "a.cu", "0", NATIVE.encode())
    line = line_of(NATIVE, part, nth)
    found = native_region(file, (line, line))
    return set() if isinstance(found, Finding) else {x for one in found for x in one.symbols}


@pytest.mark.parametrize(
    ("part", "nth", "kernel"),
    [
        ("one_kernel<", 1, "one_kernel"),
        ("<<<grid, block, 0", 1, "one_kernel"),
        ("LaunchKernel(grid", 1, "two_kernel"),
        ("two_kernel<", 1, "two_kernel"),
        ("three_kernel<", 1, "three_kernel"),
        ("cudaLaunchKernelEx(", 1, "four_kernel"),
        ("four_kernel<", 2, "four_kernel"),
        ("kernel<<<grid", 1, "five_kernel"),
        ("kernel<<<grid", 2, "six_kernel"),
        ("DISPATCH(seven", 1, "seven_kernel"),
    ],
)
def test_a_launch_is_told_by_its_name_or_by_what_launches_it(
    part: str, nth: int, kernel: str
) -> None:
    assert kernel in region(part, nth)


@pytest.mark.parametrize(
    ("part", "nth", "kernel"),
    [
        ("four_kernel<", 1, "four_kernel"),
        ("auto kernel", 1, "five_kernel"),
        ("kernel<<<grid", 1, "six_kernel"),
        ("x);", 2, "two_kernel"),
    ],
)
def test_a_line_beside_a_launch_is_none(part: str, nth: int, kernel: str) -> None:
    assert kernel not in region(part, nth)


def test_what_the_preprocessor_drops_is_no_code() -> None:
    text = dedent("""\
        #if 0
        #if WIDE
        __global__ void dropped(int* x) {}
        #else
        __global__ void dropped(int* x) {}
        #endif
        #else
        __global__ void kept(int* x) {}
        #endif
        void run(int* x) {
        #if 0
          dropped<<<1, 1>>>(x);
        #endif
          kept<<<1, 1>>>(x);
        }
        """)
    file = SourceFile("repo", "a.cu", "0", text.encode())
    assert [head.name for head in native_file(file.text).heads] == ["kept"]
    for name, lines in (("dropped", (12, 12)), ("kept", (14, 14))):
        assert isinstance(native_region(file, lines), Finding) is (name == "dropped")


def test_a_class_that_holds_a_kernel_uses_it_and_one_that_declares_a_function_does_not() -> None:
    text = dedent("""\
        struct Narrow { static constexpr auto kernel = my_kernel<4>; void run(int x = 0); };
        struct Wide { void my_kernel(bool a = true, int b = 1); };
        using Chosen = std::conditional_t<wide<int>(), Wide, Narrow>;
        struct Packed { void operator()(int s) const { go(my_kernel<8>); } };
        """)
    file = SourceFile("repo", "a.cuh", "0", text.encode())
    assert set(native_callers(file, "my_kernel")) == {"kernel", "Narrow", "operator", "Packed"}
    assert set(native_callers(file, "Narrow")) == {"Chosen"}


def test_a_name_that_a_macro_makes_is_used_where_its_stem_is() -> None:
    file = SourceFile("repo", "a.cu", "0", NATIVE.encode())
    assert "by_macro" in set(native_callers(file, "seven_kernel_wide"))
    assert "by_macro" not in set(native_callers(file, "seven_kernel_tall"))


JIT = {
    "pkg/__init__.py": "",
    "pkg/jit/csrc/norm.cuh": dedent("""\
        template <int N> __global__ void norm_kernel(float* x) { *x = N; }
        template <int N> struct NormKernel {
          static constexpr auto kernel = norm_kernel<N>;
          static void run(float* x) { LaunchKernel(1, 1)(kernel, x); }
        };
        """),
    "pkg/jit/norm.py": dedent("""\
        def _module(n):
            return load_jit("norm", cuda_wrappers=[("norm", f"NormKernel<{n}>::run")])


        def can_use_norm(n):
            return _module(n) is not None


        def norm_of(x, n):
            module = _module(n)
            module.norm(x)
            module.other(x)
        """),
    "pkg/other.py": "def run_other(module, x):\n    module.norm(x)\n",
    "pkg/main.py": dedent("""\
        from pkg.jit.norm import can_use_norm, norm_of
        from pkg.other import run_other


        def serve(x):
            if can_use_norm(4):
                norm_of(x, 4)
            run_other(x, x)


        serve(1)
        """),
}


@pytest.fixture(scope="module")
def jit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("jit") / "repo"
    folder.mkdir()
    commit_tree(folder, JIT)
    return folder


def examined(folder: Path, path: str, part: str) -> Examination:
    """Examine an emission of the compiled kernel."""
    index = open_sources([("repo", folder)])
    (repo,) = index.repos()
    line = line_of(JIT[path], part)
    evidence = (
        Evidence("definition", "repo", repo.commit, "pkg/jit/csrc/norm.cuh", (1, 1)),
        Evidence("emission", "repo", repo.commit, path, (line, line)),
    )
    name = "void norm_kernel<4>(float*)"
    return index.examine(evidence, names=(name,), category="RMSNorm", context=RunContext())


@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("pkg/jit/norm.py", "module.norm(x)"),
        ("pkg/main.py", "norm_of(x, 4)"),
        ("pkg/jit/csrc/norm.cuh", "LaunchKernel"),
    ],
)
def test_a_kernel_compiled_while_running_is_proven_by_the_call_of_its_module(
    jit: Path, path: str, part: str
) -> None:
    assert examined(jit, path, part).complete


@pytest.mark.parametrize(
    ("path", "part", "code"),
    [
        ("pkg/jit/norm.py", "module.other(x)", "E_NO_MATCHING_NODE"),
        ("pkg/other.py", "module.norm(x)", "E_NO_MATCHING_NODE"),
        ("pkg/jit/norm.py", "return _module(n) is", "E_NO_MATCHING_NODE"),
    ],
)
def test_what_only_looks_like_its_call_is_none(jit: Path, path: str, part: str, code: str) -> None:
    assert code in {one.code for one in examined(jit, path, part).findings}


def test_a_kernel_written_in_a_template_is_launched_by_what_fills_that(tmp_path: Path) -> None:
    template = (
        "FUNCTION_HEAD\n{\n  auto kernel = ns::draw_kernel<{{n}}>;\n  kernel<<<1, 1>>>(x);\n}\n"
    )
    files = {
        "csrc/cpp_itfs/draw.cuh": "__global__ void draw_kernel(int* x) {}\n",
        "csrc/cpp_itfs/draw.cpp.jinja": f'#include "draw.cuh"\n{template}',
        "csrc/cpp_itfs/draw.py": 'PATH = "draw.cpp.jinja"\n\n\ndef draw(x):\n    filled(x)\n',
        "pkg/__init__.py": "",
        "pkg/use.py": "from csrc.cpp_itfs.draw import draw\n\n\ndef use(x):\n    draw(x)\n",
        "pkg/main.py": "from pkg.use import use\n\nuse(1)\n",
    }
    commit = commit_tree(tmp_path, files)
    for path, line in (("pkg/use.py", 5), ("csrc/cpp_itfs/draw.cpp.jinja", 5)):
        found = open_sources([("repo", tmp_path)]).examine(
            (
                Evidence("definition", "repo", commit, "csrc/cpp_itfs/draw.cuh", (1, 1)),
                Evidence("emission", "repo", commit, path, (line, line)),
            ),
            names=("void draw_kernel(int*)",), category="Sampling", context=RunContext(),
        )  # fmt: skip
        assert found.complete, found.findings


@pytest.mark.parametrize(
    ("name", "origin"),
    [
        ("memcpy_triton_kernel", "unknown"),
        ("memcpy32_post", "external"),
        ("Memcpy DtoD (Device -> Device)", "external"),
        ("void lib::quant_kernel<ck_tile::fp4x2_t, 32>(int*)", "hip-global"),
        ("void ck_tile::kentry<1, ck_tile::Norm<int> >(int)", "ck"),
        ("kentry<1, ck_tile::Norm<int> >", "ck"),
    ],
)
def test_a_family_is_told_by_the_name_itself(name: str, origin: str) -> None:
    assert origin_of(name) == origin


LIBRARY = {
    "lib/__init__.py": "",
    "lib/ops.py": dedent("""\
        import triton


        @triton.jit
        def scale_kernel(x):
            pass


        def scale(x):
            scale_kernel[(1,)](x)


        def _scale(x):
            scale_kernel[(1,)](x)


        @register_layer("narrow", "wide")
        def _registered(x):
            scale_kernel[(1,)](x)


        @register_custom_op("made")
        def _operator(x):
            scale_kernel[(1,)](x)
        """),
}


@pytest.mark.parametrize(
    ("function", "imported", "used"),
    [
        ("scale", True, True),
        ("scale", False, False),
        ("_scale", True, False),
        ("_registered", False, True),
        ("_operator", False, False),
    ],
)
def test_a_function_nobody_here_calls_is_used_when_it_is_offered(
    tmp_path: Path, function: str, imported: bool, used: bool
) -> None:
    library, server = tmp_path / "lib", tmp_path / "server"
    library.mkdir()
    server.mkdir()
    commit = commit_tree(library, LIBRARY)
    head = "import lib" if imported else "import library"
    commit_tree(server, {"server/__init__.py": "", "server/main.py": f"{head}\n"})
    index = open_sources([("lib", library), ("server", server)])
    line = line_of(LIBRARY["lib/ops.py"], f"def {function}(") + 1
    found = index.examine(
        (
            Evidence("definition", "lib", commit, "lib/ops.py", (5, 5)),
            Evidence("emission", "lib", commit, "lib/ops.py", (line, line)),
        ),
        names=("scale_kernel",), category="Elementwise", context=RunContext(),
    )  # fmt: skip
    assert found.complete is used
    assert ("E_UNREACHABLE" in {one.code for one in found.findings}) is not used
