"""Source that was written to break its reader: every question is answered, none crashes."""

from __future__ import annotations

import random
import re

import pytest

from agent.source.native.sites import launches_of, native_region
from agent.source.native.structure import native_file
from agent.source.native.tables import table_rows
from agent.source.parse import TreeCache, is_plausible
from agent.source.python.kernels import kernels_in
from agent.source.python.sites import region, sites_named
from agent.source.python.text import py_text
from agent.source.snapshot import SourceFile
from tests.checkouts import BACKEND, ENGINE

MANY = 40_000
HOSTILE = {
    "open brackets": b"def f():\n    x = " + b"(" * MANY + b"\n    k[g](x)\n",
    "closed brackets": b"def f():\n    x = " + b"(" * 900 + b"1" + b")" * 900 + b"\n    k[g](x)\n",
    "nested blocks": b"def f():\n" + b"".join(b" " * (i + 1) + b"if a%d:\n" % i for i in range(300)) + b" " * 301 + b"k(1)\n",
    "nested functions": b"".join(b" " * i + b"def f%d():\n" % i for i in range(300)) + b" " * 301 + b"k(1)\n",
    "a chain of calls": b"def f():\n    x" + b".k()" * 900 + b"\n",
    "a long sum": b"def f():\n    return " + b" + ".join([b"k(a)"] * 9_000) + b"\n",
    "many branches": b"def f():\n    if a: pass\n" + b"    elif b: k(1)\n" * 900 + b"    else: k(2)\n",
    "open braces": b"__global__ void k() " + b"{" * MANY,
    "open templates": b"template<" * MANY + b"__global__ void k(",
    "globals only": b"__global__ " * 9_000,
    "continued lines": b"//" + b"\\\n" * MANY,
    "directives": b"#if 1\n" * 9_000 + b"__global__ void k() {}\n",
    "quotes": b'"' * MANY,
    "triple quotes": b'"""' * MANY,
    "open comments": b"/*" * MANY,
    "raw strings": b'R"(' * 9_000,
    "one long line": b"x" * 500_000,
    "decorators": b"@triton.jit\n" * 5_000 + b"def k(): pass\n",
    "control characters": bytes(range(32)) * 900 + b"\x7f\x80\xff",
    "noise": random.Random(7).randbytes(60_000),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_every_reader_comes_back(name: str) -> None:
    text = HOSTILE[name]
    file, trees = SourceFile("repo", "a.py", name, text), TreeCache()
    tree = trees.tree(file, "python")
    trees.tree(file, "cuda")
    last = max(file.line_count(), 1)
    for lines in ((1, 1), (2, 2), (last, last)):
        region(file, trees, lines)
        native_region(file, lines)
    list(sites_named(file, trees, "k"))
    if tree is not None:
        kernels_in(tree.root_node)
    list(py_text(text).mentions(re.compile(rb"\bk\b")))
    native_file(text)
    launches_of(file, "k")
    table_rows(text)


@pytest.mark.parametrize("path", ["a.py", "a.cu"])
def test_a_name_that_is_no_unicode_is_launched_nowhere(path: str) -> None:
    file = SourceFile("repo", path, "sha", b"int f(int x) { return x ?x : 0; }\n# is it a ?x\n")
    assert launches_of(file, "\ud800x") == ()
    assert list(sites_named(file, TreeCache(), "\ud800x")) == []


@pytest.mark.parametrize("path", [path for path in ENGINE if path.endswith((".py", ".cu"))])
def test_every_damaged_copy_of_real_code_is_read(path: str) -> None:
    text = str(ENGINE[path]).encode()
    chance = random.Random(path)
    for _ in range(6):
        damaged = bytearray(text)
        for _ in range(8):
            at = chance.randrange(len(damaged))
            damaged[at : at + chance.randrange(3)] = chance.choice(
                [b"(", b"}", b'"""', b"\n", b"#", b""]
            )
        content = bytes(damaged)
        file, trees = SourceFile("repo", path, str(hash(content)), content), TreeCache()
        for line in range(1, file.line_count() + 1, 3):
            region(file, trees, (line, line)) if path.endswith(".py") else native_region(
                file, (line, line)
            )


def test_hand_written_code_is_plausible() -> None:
    assert is_plausible(BACKEND.encode() * 4)
    assert not is_plausible(b"x = f(1)\n" * 40_000)
