"""Scratch checkouts of the look-alike engine and kernel library, made once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent.core.proposals import Evidence, Proposal, RunContext, Verdict
from agent.review.gate import judge_proposal
from agent.source.index import GitSourceIndex, open_sources
from tests.builders import ruleset
from tests.checkouts import ENGINE, KERNLIB, commit_tree, line_of


@dataclass(frozen=True)
class Serving:
    """The two checkouts, their commits and an index over both."""

    engine: Path
    kernlib: Path
    commits: dict[str, str]
    index: GitSourceIndex

    def line(self, path: str, part: str, nth: int = 1) -> int:
        """Give the line of a file of either checkout that holds a text."""
        content = {**ENGINE, **KERNLIB}[path]
        text = content if isinstance(content, str) else content.decode("latin-1")
        return line_of(text, part, nth)

    def at(
        self,
        kind: str,
        path: str,
        part: str = "",
        *,
        lines: tuple[int, int] | None = None,
        **more: str,
    ) -> Evidence:
        """Give evidence at the line of a file that holds `part`."""
        repo = "engine" if path in ENGINE or path not in KERNLIB else "kernlib"
        where = lines or (self.line(path, part), self.line(path, part))
        commit = more.pop("commit", self.commits[repo])
        return Evidence(kind, more.pop("repo", repo), commit, path, where, **more)  # type: ignore[arg-type]

    def judge(
        self,
        category: str,
        pattern: str,
        *evidence: Evidence,
        context: RunContext | None = None,
        **fields: object,
    ) -> Verdict:
        """Judge a proposal with this evidence."""
        names = fields.pop("names", {})
        trace, baseline = fields.pop("trace", None), fields.pop("baseline", None)
        rules = fields.pop("rules", ruleset())
        proposal = Proposal("0" * 16, category, pattern, evidence, **fields)  # type: ignore[arg-type]
        return judge_proposal(
            proposal,
            ruleset=rules,  # type: ignore[arg-type]
            names=names,  # type: ignore[arg-type]
            source=self.index,
            context=context or RunContext(),
            trace=trace,  # type: ignore[arg-type]
            baseline=baseline,  # type: ignore[arg-type]
        )


@pytest.fixture(scope="session")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """The look-alike engine and kernel library, each committed once."""
    folder = tmp_path_factory.mktemp("serving")
    engine, kernlib = folder / "engine", folder / "kernlib"
    engine.mkdir()
    kernlib.mkdir()
    commits = {"engine": commit_tree(engine, ENGINE), "kernlib": commit_tree(kernlib, KERNLIB)}
    index = open_sources([("engine", engine), ("kernlib", kernlib)])
    yield Serving(engine, kernlib, commits, index)
    index.close()


def codes(verdict: Verdict) -> list[str]:
    """Give the codes of the errors of a verdict, the most telling first."""
    return [finding.code for finding in verdict.errors]
