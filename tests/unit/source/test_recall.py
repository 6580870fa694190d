"""Right evidence is taken: every Triton kernel of the real checkouts, found by Python's own parser.

`LABEL_AGENT_SGLANG` and `LABEL_AGENT_AITER` name git checkouts; without them nothing is asked.
"""

from __future__ import annotations

import ast
import contextlib
import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.core.kernels import KernelName, Signature
from agent.core.proposals import Evidence, Proposal, RunContext
from agent.core.rules import UNLABELLED
from agent.review.gate import judge_proposal
from agent.ruleset.codec import load_builtin
from agent.ruleset.match import Matcher
from agent.source.index import GitSourceIndex, open_sources
from tests.checkouts import git

ROOTS = {name: os.environ.get(f"LABEL_AGENT_{name.upper()}", "") for name in ("sglang", "aiter")}
pytestmark = pytest.mark.skipif(not all(ROOTS.values()), reason="the checkouts are not at hand")
ELSEWHERE = re.compile(
    r"(?:^|/)(?:\w*tests?|testing|\w*benchmarks?|examples?|docs|playground|3rdparty)/"
    r"|(?:^|/)(?:test|bench)\w*\.py|tune|npu|xpu|/cpu|musa|ascend|mlx|gluon"
)
SHARE = 0.95
DEFENSIBLE = {"E_UNREACHABLE", "E_STEALS", "E_AMBIGUOUS", "E_GENERIC"}
Place = tuple[str, str, int]


def trees() -> Iterator[tuple[str, str, ast.Module]]:
    for repo, root in ROOTS.items():
        for path in git(Path(root), "ls-files", "*.py").splitlines():
            if not ELSEWHERE.search(path):
                text = (Path(root) / path).read_text(encoding="utf-8", errors="replace")
                with contextlib.suppress(SyntaxError):
                    yield repo, path, ast.parse(text)


def _launched(node: ast.AST) -> str | None:
    """Give what `name[grid](...)` launches; None for anything else."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript)):
        return None
    return node.func.value.id if isinstance(node.func.value, ast.Name) else None


def kernels() -> Iterator[tuple[str, Place, Place]]:
    """Yield (name, definition, launch) of the kernels defined once and launched by their name."""
    defined: dict[str, list[Place]] = {}
    launched: dict[str, list[Place]] = {}
    for repo, path, tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                marks = " ".join(map(ast.unparse, node.decorator_list))
                if "triton.jit" in marks and "repr" not in marks:
                    defined.setdefault(node.name, []).append((repo, path, node.lineno))
            elif (name := _launched(node)) is not None:
                launched.setdefault(name, []).append((repo, path, node.lineno))
    for name in sorted(defined.keys() & launched.keys()):
        if len(defined[name]) == 1:
            yield name, defined[name][0], launched[name][0]


@pytest.fixture(scope="module")
def index() -> Iterator[GitSourceIndex]:
    opened = open_sources([(name, Path(root)) for name, root in ROOTS.items()])
    yield opened
    opened.close()


def test_every_launched_triton_kernel_is_taken_or_refused_for_a_reason_that_stands(
    index: GitSourceIndex,
) -> None:
    rules, commits = load_builtin(), {one.name: one.commit for one in index.repos()}
    matcher, refused, total = Matcher(rules), Counter[str](), 0
    for name, definition, launch in kernels():
        category = matcher.label(Signature(KernelName(name))).category
        evidence = tuple(
            Evidence(kind, repo, commits[repo], path, (line, line))  # type: ignore[arg-type]
            for kind, (repo, path, line) in (("definition", definition), ("emission", launch))
        )
        verdict = judge_proposal(
            Proposal(
                "0" * 16, "Misc" if category == UNLABELLED else category, f"^{name}$", evidence,
                kernels=(name,),
            ),
            ruleset=rules, names={}, source=index, context=RunContext(),
        )  # fmt: skip
        total += 1
        if not verdict.admitted:
            refused[verdict.errors[0].code] += 1
    assert total > 200
    assert set(refused) <= DEFENSIBLE, refused
    assert sum(refused.values()) <= (1 - SHARE) * total, refused
