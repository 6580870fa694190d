"""Paths inside a checkout: which are safe to read and which are runtime code.

Pure: nothing here touches the world.
"""

from __future__ import annotations

import re
from functools import lru_cache

from agent.core.proposals import Finding

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_NON_RUNTIME_FOLDERS = frozenset(
    {
        "test", "tests", "testing", "unittest", "unittests", "test_utils", "op_tests", "e2e_test",
        "benchmark", "benchmarks", "op_benchmarks", "bench", "perf_tests",
        "example", "examples", "demo", "demos", "tutorial", "tutorials", "sample", "samples",
        "doc", "docs", "documentation", "docs_new", "notebooks", "playground", "prototype",
        "scripts", "ci", "aot", "codegen", "tuning", "tuner", "tuners", "warmup",
    }
)  # fmt: skip
_NON_RUNTIME_FILE = re.compile(
    r"^(?:(?:test|tests|bench|benchmark|example|demo|profile|conftest|debug)(?:[_.-].*)?"
    r"|.*[_-](?:test|tests|bench|benchmark|example|unittest)"
    r"|(?:gen_instances|codegen|tuning|warm_?up)(?:[_.-].*)?"
    r"|.*tuner|(?:.*[_-])?(?:tune|codegen|warm_?up))\.[A-Za-z0-9]+$"
)
_TEXT_SUFFIXES = frozenset({"md", "rst", "txt", "ipynb", "html", "svg", "adoc"})
_BINARY_SUFFIXES = frozenset({"co", "hsaco", "so", "o", "a", "bin", "pyc", "whl", "png", "jpg"})
PYTHON_SUFFIXES = frozenset({"py", "pyi"})
NATIVE_SUFFIXES = frozenset(
    {"cu", "cuh", "hip", "h", "hpp", "cpp", "cc", "cxx", "c", "inl", "inc", "hh", "hxx", "jinja"}
)


def path_problem(path: str) -> Finding | None:
    """Say why a path must not be looked up in a tree; None when it is safe.

    Safe means: relative, forward slashes, no empty, `.` or `..` component, no drive or URL, no
    control character, nothing under `.git`.
    """
    reason = ""
    if _CONTROL.search(path):
        reason = "holds a control character"
    elif path.startswith(("/", "~")):
        reason = "is not relative to the checkout"
    elif "\\" in path:
        reason = "holds a backslash"
    elif ":" in path:
        reason = "holds a colon (a drive, a URL or a revision)"
    else:
        parts = path.split("/")
        if any(part in ("", ".", "..") for part in parts):
            reason = "has an empty, `.` or `..` component"
        elif any(part.lower() == ".git" for part in parts):
            reason = "points into .git"
    if not reason:
        return None
    return Finding("E_PATH_UNSAFE", f"the path {path!r} {reason}")


@lru_cache(maxsize=65_536)
def is_runtime(path: str) -> bool:
    """Tell whether a path is code that runs in a server.

    Tests, benchmarks and docs are not, nor what makes code or tunes it before.
    """
    *folders, name = path.split("/")
    if any(folder.lower() in _NON_RUNTIME_FOLDERS for folder in folders):
        return False
    return not (_NON_RUNTIME_FILE.match(name.lower()) or suffix(path) in _TEXT_SUFFIXES)


def suffix(path: str) -> str:
    """Give the lower-case suffix of a path without its dot; "" when there is none."""
    name = path.rpartition("/")[2]
    return name.rpartition(".")[2].lower() if "." in name else ""


def is_python(path: str) -> bool:
    """Tell whether a path is Python source."""
    return suffix(path) in PYTHON_SUFFIXES


def is_native(path: str) -> bool:
    """Tell whether a path is HIP, CUDA or C++ source."""
    return suffix(path) in NATIVE_SUFFIXES


def is_binary(path: str) -> bool:
    """Tell whether a path is a binary by its suffix."""
    return suffix(path) in _BINARY_SUFFIXES
