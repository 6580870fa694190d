"""Native launches: of host functions nobody binds, and of modules that are only loaded."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from agent.core.proposals import Evidence, RunContext
from agent.source.index import open_sources
from tests.checkouts import commit_tree, line_of

KERNEL = "__global__ void scale_kernel(int* x) { *x = 2; }\n"
HOST = "void scale(int* x) {\n  scale_kernel<<<1, 1>>>(x);\n}\n"
STRUCT = (
    "struct ScaleKernel {\n  static void run(int* x) {\n    scale_kernel<<<1, 1>>>(x);\n  }\n};\n"
)
UNBOUND = {
    "nobody": HOST,
    "a declaration": f"void scale(int* x);\n{HOST}",
    "an explicit instantiation": f"template <typename T>\n{HOST}template void scale<int>(int*);\n",
    "itself": HOST.replace("}\n", "  if (x[1]) scale(x + 1);\n}\n"),
    "a function nobody binds": f"{HOST}void wider(int* x) {{\n  scale(x);\n}}\n",
    "two functions that call each other": (
        f"{HOST}void even(int* x) {{\n  scale(x);\n  odd_(x);\n}}\nvoid odd_(int* x) {{\n  even(x);\n}}\n"
    ),
    "a comment": f'{HOST}// m.def("scale", &scale);\n',
    "a struct nobody names": STRUCT,
}  # fmt: skip
BOUND = {
    "pybind": f'{HOST}PYBIND11_MODULE(ops, m) {{\n  m.def("scale", &scale);\n}}\n',
    "torch": f'{HOST}TORCH_LIBRARY_FRAGMENT(ops, m) {{\n  m.impl("x", torch::kCUDA, &scale);\n}}\n',
    "a macro": f'#define SCALE_PYBIND m.def("scale", &scale);\n{HOST}',
    "an export": f"{HOST}TVM_FFI_DLL_EXPORT_TYPED_FUNC(scale_it, scale);\n",
    "a caller that is bound": (
        f"{HOST}void wider(int* x) {{\n  scale(x);\n}}\nPYBIND11_MODULE(ops, m) {{\n"
        '  m.def("wider", &wider);\n}\n'
    ),
    "a table": f"{HOST}static auto table = {{&scale}};\n",
}


def examined(folder: Path, native: str, python: str = "", cited: str = "") -> set[str]:
    """Examine a launch in native source, or the Python line that holds `cited`."""
    text = KERNEL + native
    files = {
        "csrc/scale.cu": text, "setup_rocm.py": 'sources = ["csrc/scale.cu"]\n',
        "server/__init__.py": "", "server/ops.py": python or "x = 1\n",
        "server/main.py": "from server.ops import run\n\nrun(1)\n",
    }  # fmt: skip
    commit = commit_tree(folder / "server", files)
    path = "server/ops.py" if cited else "csrc/scale.cu"
    line = line_of(python, cited) if cited else line_of(text, "scale_kernel<<<")
    index = open_sources([("server", folder / "server")])
    found = index.examine(
        (
            Evidence("definition", "server", commit, "csrc/scale.cu", (1, 1)),
            Evidence("emission", "server", commit, path, (line, line)),
        ),
        names=("void scale_kernel(int*)",), category="Elementwise", context=RunContext("rocm"),
    )  # fmt: skip
    index.close()
    return {one.code for one in found.findings}


@pytest.mark.parametrize("name", UNBOUND)
def test_a_launch_in_a_function_nothing_binds_is_no_evidence(tmp_path: Path, name: str) -> None:
    assert examined(tmp_path, UNBOUND[name]) == {"E_UNREACHABLE"}


@pytest.mark.parametrize("name", BOUND)
def test_a_launch_in_a_bound_function_is_evidence(tmp_path: Path, name: str) -> None:
    assert examined(tmp_path, BOUND[name]) == set()


@pytest.mark.parametrize(
    "python",
    [
        pytest.param("import ops\n\n\ndef run(x):\n    ops.scale(x)\n", id="a call"),
        pytest.param('run = lib["scale"]\n', id="a string"),
    ],
)
def test_what_python_names_is_bound(tmp_path: Path, python: str) -> None:
    assert examined(tmp_path, HOST, python) == set()


def test_prose_that_names_a_function_binds_nothing(tmp_path: Path) -> None:
    prose = '"""Say how to scale a row."""\n\n# scale\n'
    assert examined(tmp_path, HOST, prose) == {"E_UNREACHABLE"}


JIT = dedent("""\
    from functools import cache
    from server.jit import load_jit


    @cache
    def _scale_module(kind):
        return load_jit("scale", files=["scale.cu"], wrappers=[("scale_it", "ScaleKernel::run")])


    @cache
    def _kept_module(kind):
        module = load_jit("scale", wrappers=[("scale_it", "ScaleKernel::run")])
        return module


    def run(x):
        module = _scale_module(1)
        module.scale_it(x)
        kept = _kept_module(2)
        _scale_module(3).scale_it(x)
    """)


@pytest.mark.parametrize("cited", ["_scale_module(1)", "_kept_module(2)"])
def test_a_call_that_only_loads_a_module_is_no_launch(tmp_path: Path, cited: str) -> None:
    assert examined(tmp_path, STRUCT, JIT, cited) == {"E_NO_MATCHING_NODE", "E_MISSING_EVIDENCE"}


@pytest.mark.parametrize("cited", ["module.scale_it(x)", "_scale_module(3).scale_it"])
def test_a_call_of_what_is_in_the_module_is_a_launch(tmp_path: Path, cited: str) -> None:
    assert examined(tmp_path, STRUCT, JIT, cited) == set()


def test_a_module_that_is_called_at_once_launches(tmp_path: Path) -> None:
    text = JIT.replace("_scale_module(3).scale_it(x)", "_scale_module(3)(x)")
    assert examined(tmp_path, STRUCT, text, "_scale_module(3)(x)") == set()


@pytest.mark.parametrize(
    "python",
    [
        pytest.param(
            'def run(x, kind):\n    if kind == "scale_it":\n        x.scale_it(1)\n', id="compared"
        ),
        pytest.param('def run(x):\n    raise_for("scale_it")\n    x.scale_it(1)\n', id="told"),
    ],
)
def test_a_method_of_anything_is_not_of_a_module(tmp_path: Path, python: str) -> None:
    """`x.sigmoid()` of a tensor is not the `sigmoid` that a library binds."""
    native = f'{HOST}PYBIND11_MODULE(ops, m) {{\n  m.def("scale_it", &scale);\n}}\n'
    found = examined(tmp_path, native, python, "x.scale_it(1)")
    assert found == {"E_NO_MATCHING_NODE", "E_MISSING_EVIDENCE"}
