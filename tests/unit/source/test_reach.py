"""Which calls lead to a kernel: by imports and definitions, not by a name that happens to be equal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from agent.core.proposals import Evidence, RunContext
from agent.source.index import GitSourceIndex, open_sources
from agent.source.python.imports import read_imports
from agent.source.python.text import in_call, is_binding, py_text
from agent.source.snapshot import whole_word
from tests.checkouts import commit_tree, line_of

NORM = "csrc/norm.cu"
TREE = {
    NORM: dedent("""\
        template <typename T>
        __global__ void my_norm_kernel(T* out) { *out = 0; }

        void my_norm(void* x) { my_norm_kernel<float><<<1, 1>>>(nullptr); }
        PYBIND11_MODULE(module_norm, m) { m.def("my_norm", &my_norm); }
        """),
    "csrc/other.cu": dedent("""\
        template <typename T>
        __global__ void my_norm_kernel(T* out) { *out = 1; }

        void other_norm(void* x) { my_norm_kernel<float><<<1, 1>>>(nullptr); }
        """),
    "pkg/__init__.py": "from .ops.norm import *\n",
    "pkg/loader.py": "def compile_ops(module):\n    return lambda bound: bound\n",
    "pkg/ops/__init__.py": "",
    "pkg/ops/norm.py": dedent("""\
        from ..loader import compile_ops


        @compile_ops("module_norm")
        def my_norm(x) -> None: ...


        @compile_ops("module_other")
        def other_norm(x) -> None: ...


        def wrapped_norm(x):
            my_norm(x)
        """),
    "server/__init__.py": "",
    "server/made.py": dedent("""\
        import torch
        from pkg import my_norm


        @torch.library.custom_op("server::made_norm")
        def made_norm(x):
            my_norm(x)
        """),
    "server/pool.py": dedent("""\
        import pkg


        class Pool:
            def normalise_all(self, x):
                pkg.my_norm(x)

            def write(self, x):
                pkg.my_norm(x)

            def guess_once(self, x):
                self.pool.normalise_all(x)

            def guess_twice(self, x):
                self.pool.guess_once(x)
        """),
    "server/far.py": "from pkg.ops.norm import wrapped_norm\n\n\ndef far_1(x):\n    wrapped_norm(x)\n"
    + "".join(f"\n\ndef far_{n}(x):\n    far_{n - 1}(x)\n" for n in range(2, 9)),
}  # fmt: skip
LEADS = {
    "through the package": ("import pkg", "pkg.my_norm(x)"),
    "imported": ("from pkg import my_norm", "my_norm(x)"),
    "imported under another name": ("from pkg.ops.norm import my_norm as norm_of", "norm_of(x)"),
    "one of two imports": (
        "try:\n    from pkg import my_norm\nexcept ImportError:\n    from torch import my_norm",
        "my_norm(x)",
    ),
    "an operator of Python": ("import torch", "torch.ops.server.made_norm(x)"),
    "a registered operator": ("import torch", "torch.ops.pkg.my_norm(x)"),
    "by a wrapper": ("from pkg.ops.norm import wrapped_norm", "wrapped_norm(x)"),
    "a method few classes have": ("", "x.pool.normalise_all(x)"),
    "two guesses": ("", "x.guess_once(x)"),
    "some functions away": ("from server.far import far_3", "far_3(x)"),
}
DOES_NOT = {
    "PyTorch's function of that name": ("import torch.nn.functional as F", "F.my_norm(x)"),
    "PyTorch's own operator": ("import torch", "torch.ops.aten.my_norm(x)"),
    "an operator called as a function": ("import torch", "torch.ops.pkg.wrapped_norm(x)"),
    "torch": ("import torch", "torch.my_norm(x)"),
    "another library": ("import flashthing", "flashthing.my_norm(x)"),
    "imported from another library": ("from flashthing import my_norm", "my_norm(x)"),
    "a method of anything": ("", "x.my_norm()"),
    "a function of the file itself": ("def my_norm(x):\n    return x", "my_norm(x)"),
    "the operator of another file's kernel": ("import pkg", "pkg.other_norm(x)"),
    "a file's write": ("", "x.write(x)"),
    "three guesses": ("", "x.guess_twice(x)"),
    "too far away": ("from server.far import far_8", "far_8(x)"),
    "a function before a list of names": (
        'def helper(x):\n    return x\n\n\nNAMES = [\n    "my_norm",\n    "other",\n]',
        "helper(x)",
    ),
}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitSourceIndex]:
    folder = tmp_path_factory.mktemp("reach") / "repo"
    folder.mkdir()
    cases = {**LEADS, **DOES_NOT}
    files = {
        _case_path(name): f"{head}\n\n\ndef run_case(x):\n    {call}\n"
        for name, (head, call) in cases.items()
    }
    uses = "".join(
        f"from server.{Path(path).stem} import run_case as run_{number}\n"
        for number, path in enumerate(files)
    )
    commit_tree(folder, {**TREE, **files, "server/main.py": uses})
    index = open_sources([("repo", folder)])
    yield index
    index.close()


def _case_path(name: str) -> str:
    return f"server/case_{''.join(char if char.isalnum() else '_' for char in name)}.py"


def leads(index: GitSourceIndex, name: str, head: str, call: str) -> bool:
    """Ask whether a case's call is an emission of the kernel of norm.cu."""
    (repo,) = index.repos()
    line = head.count("\n") + 5
    kernel = (line_of(str(TREE[NORM]), "__global__"),) * 2
    evidence = (
        Evidence("definition", "repo", repo.commit, NORM, kernel),
        Evidence("emission", "repo", repo.commit, _case_path(name), (line, line)),
    )
    found = index.examine(
        evidence, names=("my_norm_kernel",), category="RMSNorm", context=RunContext()
    )
    refused = {one.code for one in found.findings if "server/" in one.location}
    assert refused <= {"E_NO_MATCHING_NODE"}, found.findings
    return not refused


@pytest.mark.parametrize("name", LEADS)
def test_a_call_leads_to_the_kernel(checkout: GitSourceIndex, name: str) -> None:
    assert leads(checkout, name, *LEADS[name])


@pytest.mark.parametrize("name", DOES_NOT)
def test_a_call_that_only_looks_like_it_leads_nowhere(checkout: GitSourceIndex, name: str) -> None:
    assert not leads(checkout, name, *DOES_NOT[name])


def test_every_import_of_a_name_is_kept() -> None:
    found = read_imports(
        b"from a import b  # why\nfrom c import (\n    b,  # and\n    d as e,\n)\nimport f.g\n"
        b"import h.i as j\nfrom .k import *\nif x:\n    from l import \\\n        b\n"
    )
    assert found.names["b"] == (("a", "b"), ("c", "b"), ("l", "b"))
    assert found.names["e"] == (("c", "d"),)
    assert (found.names["f"], found.names["j"]) == ((("f", ""),), (("h.i", ""),))
    assert found.stars == (".k",)
    assert found.aliases("d") == ("e",)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def f():\n    NAME\n", ("f",)),
        ("def f():\n    pass\n\nX = [\n    NAME,\n]\n", ()),
        ("def f(\n    a,\n):\n    NAME\n", ("f",)),
        ("class C:\n    def f(self):\n        x = (\n1,\n)\n        NAME\n", ("f", "class C")),
        ("class C:\n    def f(self):\n        pass\n\n    y = NAME\n", ("class C",)),
        ('def f():\n    """Doc\n\nat the margin."""\n    NAME\n', ("f",)),
        ("def f():\n    def g():\n        pass\n    NAME\n", ("f",)),
        ("def f():\n    x = 1\n# a comment at the margin\n    NAME\n", ("f",)),
    ],
)
def test_a_mention_belongs_to_the_block_it_stands_in(text: str, expected: tuple[str, ...]) -> None:
    (mention,) = py_text(text.encode()).mentions(whole_word("NAME"))
    assert mention.functions == expected


@pytest.mark.parametrize(
    ("text", "receiver"),
    [
        ("NAME(x)", ""),
        ("a.b.NAME(x)", "a.b"),
        ("x = not a.NAME(x)", "a"),
        ("f().NAME(x)", None),
        ("f().a.NAME(x)", None),
        ("a[0].NAME(x)", None),
        ("x = (\n    f()\n    .NAME(x)\n)", None),
    ],
)
def test_what_stands_before_the_dot_is_read(text: str, receiver: str | None) -> None:
    (mention,) = py_text(text.encode()).mentions(whole_word("NAME"))
    assert mention.receiver == receiver


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("@bind('m')\ndef k(x) -> None: ...\n", True),
        ("@bind('m')\ndef k(\n    x: list[int] = (1, 2),\n) -> None:\n    pass\n", True),
        ('@bind("m")\ndef k(x):\n    """Doc."""\n    ...\n', True),
        ("@bind('m')\ndef k(x):\n    return x\n", False),
        ("def k(x): ...\n", False),
    ],
)
def test_a_decorated_stub_binds_a_native_function(text: str, expected: bool) -> None:
    assert is_binding(text.encode(), text.index("k(")) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('load("NAME")', True),
        ('load(["x", ("NAME", "y")])', True),
        ('X = ["NAME"]', False),
        ('X = ("NAME",)', False),
        ('f("x"); y = "NAME"', False),
    ],
)
def test_a_string_is_an_argument_only_within_a_call(text: str, expected: bool) -> None:
    assert in_call(text.encode(), text.index("NAME")) is expected
