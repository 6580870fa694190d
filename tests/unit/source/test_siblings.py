"""Several definitions in one proposal: siblings that are all proven, and rivals for one name."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from agent.core.proposals import Evidence, RunContext
from agent.core.source import Examination
from agent.source.index import open_sources
from tests.checkouts import commit_tree, line_of

ONE = dedent("""\
    import triton

    name_of = make_kernel_repr(
        "_printed_kernel", ["BLOCK"]
    )


    @triton.jit
    def _first_kernel(x):
        pass


    @triton.jit
    def _second_kernel(x):
        pass


    @triton.jit(repr=name_of)
    def _made_kernel(x):
        pass


    def run_one(x):
        _first_kernel[(1,)](x)
        _second_kernel[(1,)](x)
        _made_kernel[(1,)](x)
    """)
TWO = dedent("""\
    import triton


    @triton.jit
    def _first_kernel(x):
        pass


    def run_two(x):
        _first_kernel[(1,)](x)
    """)
MAIN = "from pkg.one import run_one\nfrom pkg.two import run_two\n\nrun_one(1)\nrun_two(1)\n"
FILES = {"pkg/__init__.py": "", "pkg/one.py": ONE, "pkg/two.py": TWO, "pkg/main.py": MAIN}


def examined(
    folder: Path, names: tuple[str, ...], *cited: tuple[str, str, str], without: str = ""
) -> Examination:
    """Examine evidence given as (kind, path, text of its line)."""
    commit = commit_tree(folder, {path: FILES[path] for path in FILES if path != without})
    evidence = tuple(
        Evidence(kind, "repo", commit, path, (line_of(FILES[path], part),) * 2)  # type: ignore[arg-type]
        for kind, path, part in cited
    )
    index = open_sources([("repo", folder)])
    return index.examine(evidence, names=names, category="Misc", context=RunContext())


FIRST = ("definition", "pkg/one.py", "def _first_kernel")
SECOND = ("definition", "pkg/one.py", "def _second_kernel")
OTHER = ("definition", "pkg/two.py", "def _first_kernel")
LAUNCH = ("emission", "pkg/one.py", "_second_kernel[")


def test_siblings_that_are_all_cited_are_no_rivals_of_each_other(tmp_path: Path) -> None:
    names = ("_first_kernel", "_second_kernel")
    found = examined(tmp_path, names, FIRST, SECOND, LAUNCH, without="pkg/two.py")
    assert (found.complete, found.findings) == (True, ())


@pytest.mark.parametrize(
    ("cited", "complete", "severity"),
    [
        ((FIRST,), False, "error"),
        ((FIRST, OTHER), True, "note"),
        ((FIRST, SECOND), False, "error"),
    ],
    ids=["one of two", "both", "another one"],
)
def test_a_name_with_two_definitions_is_ambiguous_unless_both_are_cited(
    tmp_path: Path, cited: tuple[tuple[str, str, str], ...], complete: bool, severity: str
) -> None:
    launch = ("emission", "pkg/one.py", "_first_kernel[")
    names = ("_first_kernel", *(["_second_kernel"] if SECOND in cited else []))
    found = examined(tmp_path, names, *cited, launch)
    assert found.end_state == "AMBIGUOUS"
    assert found.complete is complete
    assert {one.severity for one in found.findings if one.code == "E_AMBIGUOUS"} == {severity}


@pytest.mark.parametrize("part", ["name_of = make", "_printed_kernel", "def _made_kernel"])
def test_the_template_of_a_name_is_cited_where_it_is_built(tmp_path: Path, part: str) -> None:
    found = examined(
        tmp_path, ("_printed_kernel_BLOCK_16",),
        ("template", "pkg/one.py", part), ("emission", "pkg/one.py", "_made_kernel["),
    )  # fmt: skip
    assert (found.complete, found.findings) == (True, ())


LONG = "import triton\n\n\n@triton.jit\ndef _long_kernel(x):\n" + "    y = x\n" * 90
LONG += "\n\ndef run_long(x):\n    _long_kernel[(1,)](x)\n\n\nrun_long(1)\n"
NATIVE = "template <int N>\n__global__ void long_kernel(int* x)\n{\n" + "  ++x;\n" * 90 + "}\n"
NATIVE += "void launch_long(int* x)\n{\n  long_kernel<1><<<1, 1>>>(x);\n}\n"


@pytest.mark.parametrize(
    ("path", "lines", "name", "refused"),
    [
        ("pkg/long.py", (4, 95), "_long_kernel", set()),
        ("pkg/long.py", (5, 95), "_long_kernel", set()),
        ("pkg/long.py", (4, 99), "_long_kernel", {"E_NO_MATCHING_NODE"}),
        ("pkg/jit/csrc/long.cuh", (1, 94), "void long_kernel<1>(int*)", set()),
        ("pkg/jit/csrc/long.cuh", (2, 94), "void long_kernel<1>(int*)", set()),
        ("pkg/jit/csrc/long.cuh", (2, 95), "void long_kernel<1>(int*)", {"E_NO_MATCHING_NODE"}),
    ],
)
def test_a_definition_may_be_cited_whole_and_no_further(
    tmp_path: Path, path: str, lines: tuple[int, int], name: str, refused: set[str]
) -> None:
    files = {"pkg/__init__.py": "", "pkg/long.py": LONG, "pkg/jit/csrc/long.cuh": NATIVE}
    commit = commit_tree(tmp_path, files)
    found = open_sources([("repo", tmp_path)]).examine(
        (Evidence("definition", "repo", commit, path, lines),),
        names=(name,), category="Misc", context=RunContext(),
    )  # fmt: skip
    codes = {one.code for one in found.findings}
    assert codes - {"E_MISSING_EVIDENCE"} == refused


@pytest.mark.parametrize(
    ("snippet", "refused"),
    [
        ("def run_one(x):", set()),
        ("_first_kernel[(1,)](x)", set()),
        ("    _first_kernel[(1,)](x)  ", set()),
        ("(x)", {"E_SNIPPET"}),
        ("_first_kernel", {"E_SNIPPET"}),
        ("x):\n    _first", {"E_SNIPPET"}),
    ],
)
def test_a_short_quote_is_of_whole_lines(tmp_path: Path, snippet: str, refused: set[str]) -> None:
    commit = commit_tree(tmp_path, FILES)
    head = snippet.startswith("def")
    line = line_of(ONE, "def _first_kernel" if head else "_first_kernel[")
    snippet = snippet.replace("run_one", "_first_kernel")
    found = open_sources([("repo", tmp_path)]).examine(
        (
            Evidence(
                "definition" if head else "emission", "repo", commit, "pkg/one.py", (line, line),
                snippet=snippet,
            ),
        ),
        names=("_first_kernel",), category="Misc", context=RunContext(),
    )  # fmt: skip
    assert {one.code for one in found.findings} & {"E_SNIPPET", "E_SNIPPET_RAW"} == refused
