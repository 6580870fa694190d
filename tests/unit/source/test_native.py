"""What is read from HIP and CUDA trees: heads, launches, manifests, tables, code objects."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.core.proposals import Finding
from agent.source.checkout import open_checkout
from agent.source.definitions import Definitions
from agent.source.index import open_sources
from agent.source.names import template_arguments
from agent.source.native.elf import elf_symbols
from agent.source.native.manifests import BuildManifests
from agent.source.native.sites import native_region
from agent.source.native.structure import native_file
from agent.source.native.tables import code_object_paths, table_arch, table_rows
from agent.source.native.templates import arity_agrees
from agent.source.parse import TreeCache
from agent.source.snapshot import Snapshot, SourceFile, Store
from tests.checkouts import commit_tree, elf_with, line_of
from tests.unit.source.conftest import Serving

HEADS = """\
namespace outer { namespace inner {
template <typename T,
          int kTile>
__global__ void
__launch_bounds__(256, 1)
multi_line_kernel(const T* in,
                  int n) {
}
} // inner
namespace {
__global__ void hidden(int n) {}
}
struct Holder {
  static __global__ void member_kernel(int n) {}
};
} // outer
extern "C" __global__ void c_kernel(float* x) { }
__global__ void declared_only(int n);
#if defined(A)
__global__ void twice(int n) {
#else
__global__ void twice(long n) {
#endif
}
// __global__ void commented(int n) {}
const char* text = "__global__ void in_string(int n) {}";
/* __global__ void blocked(int n) {} */
#define MAKE(name) __global__ void name(int n) {}
#define MAKE_FIXED(T) \\
  __global__ void fixed_kernel(T n) {}
__attribute__((global)) void not_spelled(int n) {}
__global__ __launch_bounds__(64) void bounds_first(int n) {}
template <typename T> __global__ typename std::enable_if<(sizeof(T) > 2), void>::type enabled(T* x) {}
namespace a::b { __global__ void nested_name(int n) {} }
__global__ void operator_after(int n) noexcept { }
int operator()(int n) { return n; }
__global__ void after_everything(int n) {}
"""


def heads(text: str) -> dict[str, tuple[int, bool]]:
    return {head.qualified: (head.line, head.body) for head in native_file(text.encode()).heads}


def test_every_global_head_is_found_with_its_namespaces() -> None:
    found = heads(HEADS)
    assert found == {
        "outer::inner::multi_line_kernel": (6, True),
        "outer::(anonymous namespace)::hidden": (11, True),
        "outer::Holder::member_kernel": (14, True),
        "c_kernel": (17, True),
        "declared_only": (18, False),
        "twice": (22, True),
        "": (28, True),
        "fixed_kernel": (30, True),
        "bounds_first": (32, True),
        "enabled": (33, True),
        "a::b::nested_name": (34, True),
        "operator_after": (35, True),
        "after_everything": (37, True),
    }


def test_the_beginning_of_a_head_is_its_template() -> None:
    (head,) = (one for one in native_file(HEADS.encode()).heads if one.name == "multi_line_kernel")
    assert (head.begins, head.first, head.line) == (2, 4, 6)


LAUNCHES = """\
template <typename T> __global__ void my_kernel(T* x) {}
#define KL(name, n) \\
  do { \\
    name<float><<<n, 64>>>(nullptr); \\
  } while (0)
#define DISPATCH(n) \\
  KL(my_kernel, n);

void direct(int n) {
  my_kernel<float>
      <<<dim3(n), 64, 0, stream>>>(nullptr);
}
void macro(int n) { KL(my_kernel, n); }
void hip(int n) { hipLaunchKernelGGL((my_kernel<float>), dim3(n), dim3(64), 0, 0, nullptr); }
void driver(int n) { cudaLaunchKernelEx(&config, my_kernel<float>, nullptr); }
void log() { TORCH_WARN("my_kernel<<<1, 1>>>"); }  // my_kernel<<<1, 1>>>(x)
void other(int n) { compute(n); }
"""


def native_source(text: str) -> SourceFile:
    return SourceFile("repo", "csrc/a.cu", str(hash(text)), text.encode())


@pytest.mark.parametrize(
    ("line", "function", "node"),
    [
        (10, "direct", "kernel_call"),
        (13, "macro", "macro_launch"),
        (7, "DISPATCH", "macro_launch"),
        (14, "hip", "launch_call"),
        (15, "driver", "launch_call"),
    ],
)
def test_a_launch_names_its_kernel_and_function(line: int, function: str, node: str) -> None:
    found = native_region(native_source(LAUNCHES), (line, line))
    assert not isinstance(found, Finding)
    assert ("my_kernel", function, node) in [(one.symbol, one.function, one.node) for one in found]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (1, "E_NO_MATCHING_NODE"),
        (2, "E_NO_MATCHING_NODE"),
        (4, "E_NO_MATCHING_NODE"),
        (16, "E_NO_MATCHING_NODE"),
        (17, "E_NO_MATCHING_NODE"),
    ],
    ids=["the head", "a macro's head", "a macro's parameter", "a log line", "another call"],
)
def test_lines_without_a_launch_are_none(line: int, code: str) -> None:
    found = native_region(native_source(LAUNCHES), (line, line))
    assert isinstance(found, Finding)
    assert found.code == code


def test_manifests_reach_sources_and_their_headers(serving: Serving) -> None:
    checkout = open_checkout("engine", serving.engine)
    manifests = BuildManifests(Snapshot(Store(checkout), checkout.info.commit))
    assert manifests.backends("eng-kernel/csrc/gemm/quant.cu") == {"cuda"}
    assert manifests.backends("eng-kernel/csrc/gemm/quant.cuh") == {"cuda"}
    assert manifests.backends("eng-kernel/csrc/elementwise/act.cu") == {"rocm"}
    library = open_checkout("kernlib", serving.kernlib)
    manifests = BuildManifests(Snapshot(Store(library), library.info.commit))
    assert manifests.backends("csrc/kernels/quant_kernels.cu") == {"rocm"}
    assert not manifests.backends("csrc/kernels/not_built.cu")


@pytest.mark.parametrize("wide", [True, False], ids=["64 bit", "32 bit"])
def test_the_symbols_of_a_code_object_are_read(wide: bool) -> None:
    assert elf_symbols(elf_with("_ZN1a1bE", "c.kd", wide=wide)) == {"_ZN1a1bE", "c.kd"}


def test_damaged_code_objects_give_nothing_and_never_crash() -> None:
    whole = elf_with("_ZN1a1bE")
    assert elf_symbols(b"") is None
    assert elf_symbols(b"not an elf file" * 9) is None
    for at in range(0, len(whole), 3):
        elf_symbols(whole[:at])
        elf_symbols(whole[:at] + b"\xff" * 16 + whole[at + 16 :])


TABLE = b"""qType,knl_name,co_name
fp8,_ZN5aiter3mlaE,mla.co
#fp8,_ZN5aiter4mla2E,mla2.co
fp8,"_ZN5aiter4mla3E","mla,3.co"

fp8
bf16,_ZN5aiter4mla4E,mla4.co,extra
"""


def test_a_table_is_read_by_its_header() -> None:
    table = table_rows(TABLE)
    assert table is not None
    assert [(row.line, row.name, row.code_object) for row in table.rows] == [
        (2, "aiter::mla", "mla.co"),
        (4, "aiter::mla3", "mla,3.co"),
        (7, "aiter::mla4", "mla4.co"),
    ]
    assert table.commented == (3,)


@pytest.mark.parametrize("text", [b"", b"a,b,c\n1,2,3\n", b"\xff\xfe\x00", b"#knl_name\n"])
def test_a_file_that_is_no_table_is_none(text: bytes) -> None:
    assert table_rows(text) is None


def test_an_architecture_is_told_by_the_folder() -> None:
    assert table_arch("hsa/gfx942/mla/mla_asm.csv") == "gfx942"
    assert table_arch("csrc/mla.csv") == ""


def test_a_code_object_lies_beside_its_table_or_below() -> None:
    table = table_rows(TABLE)
    assert table is not None
    paths = ["hsa/gfx942/mla/MI300/mla.co", "hsa/gfx950/mla/mla.co", "hsa/gfx942/mla/MI308/mla.co"]
    assert code_object_paths("hsa/gfx942/mla/t.csv", table.rows[0], paths) == (paths[0], paths[2])
    beside = [*paths, "hsa/gfx942/mla/mla.co"]
    assert code_object_paths("hsa/gfx942/mla/t.csv", table.rows[0], beside) == (beside[3],)


@pytest.mark.parametrize(
    ("text", "quality"),
    [
        ("__global__ void my_kernel(int n) {}\n", "clean"),
        ("__global__ void my_kernel(int n) {}\nvoid f() { a <<< ; }\n", "recovered"),
        ("ODD_MACRO(x y z) __global__ void my_kernel(int n) @ {\n", "lexical"),
    ],
)
def test_the_quality_of_a_parse_is_stated(tmp_path: Path, text: str, quality: str) -> None:
    commit_tree(tmp_path, {"csrc/a.cu": text})
    checkout = open_checkout("repo", tmp_path)
    definitions = Definitions(Snapshot(Store(checkout), checkout.info.commit), TreeCache())
    (found,) = definitions.find("void my_kernel(int)")
    assert (found.lines[0], found.parse) == (line_of(text, "my_kernel"), quality)


@pytest.mark.parametrize(
    ("source", "arguments", "fits"),
    [
        ("template <typename T, int N> __global__ void k(T* x) {}", 2, True),
        ("template <typename T, int N> __global__ void k(T* x) {}", 1, False),
        ("template <typename T, int N = (1 > 0)> __global__ void k(T* x) {}", 2, True),
        ("template <typename T, enable_if_t<is<T>::v, int> = 0> __global__ void k() {}", 2, True),
        ("template <typename... T> __global__ void k(T... x) {}", 0, True),
        ("template <int N, typename... T> __global__ void k(T... x) {}", 5, True),
        ("template <int N, typename... T> __global__ void k(T... x) {}", 0, False),
        ("__global__ void k(int x) {}", 0, True),
        ("__global__ void k(int x) {}", 1, False),
        ("__global__ void k(auto x) {}", 1, True),
        ("template <> __global__ void k<float>(float* x) {}", 1, True),
        ("template <int A> struct S { static __global__ void k(int x) {} };", 0, True),
        ("template <int A> void f() {}\n__global__ void k(int x) {}", 0, True),
        ("template <typename T, T v = T{}> __global__ void k(T x) {}", 2, True),
    ],
)
def test_the_template_arguments_of_a_name_are_those_of_its_definition(
    source: str, arguments: int, fits: bool
) -> None:
    file = native_file(source.encode())
    [head] = file.heads
    assert arity_agrees(arguments, file, head) is fits


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("void k<float, 8>(float*)", 2),
        ("void ns::k<std::pair<int, int>, (Mode)1>(float*)", 2),
        ("void k<f(int, int)::{lambda(int)#1}>(int)", 1),
        ("k(int)", 0),
        ("void k<>(int)", 0),
        ("k", None),
        ("void k<float, 8", None),
    ],
)
def test_template_arguments_are_counted_from_a_demangled_name(
    name: str, arguments: int | None
) -> None:
    assert template_arguments(name) == arguments


NAMESAKES = {
    "a/jit.cu": "namespace {\n__global__ void rope(int x) {}\n}\n",
    "b/kernel.cu": "__global__ void rope(int x) {}\n",
}


@pytest.mark.parametrize(
    ("name", "paths"),
    [
        ("rope(int)", ["b/kernel.cu"]),
        ("(anonymous namespace)::rope(int)", ["a/jit.cu", "b/kernel.cu"]),
        ("rope", ["a/jit.cu", "b/kernel.cu"]),
    ],
)
def test_a_name_written_out_without_a_namespace_is_the_global_one(
    tmp_path: Path, name: str, paths: list[str]
) -> None:
    commit_tree(tmp_path, NAMESAKES)
    index = open_sources([("repo", tmp_path)])
    assert [one.path for one in index.find_definition(name)] == paths
