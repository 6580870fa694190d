"""The generated parts of the rule pages, and the table of coverage of the sample traces.

A block `<!-- generated: WHAT -->` ... `<!-- end -->` of `rules/*.md` and of the coverage page is
filled here: `examples` and `rules` of the page's category, `coverage`. The last needs the folder of
sample traces beside the checkout; without it that page is left alone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from agent.core.proposals import Evidence
from agent.core.rules import Rule, RuleSet
from agent.ruleset.codec import load_builtin
from agent.ruleset.match import label_trace
from agent.traces.reader import read_trace

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("LABEL_AGENT_SHARED", ROOT.parent / "shared"))
COVERAGE = Path("docs/rules-coverage.md")
BLOCK = re.compile(r"<!-- generated: (?P<what>[a-z]+) -->\n.*?<!-- end -->", re.DOTALL)
NAME_WIDTH = 92
NAMES_PER_RULE = 2


def generated_blocks() -> dict[str, str]:
    """Give every page that holds a generated block, by its path from the root, with fresh text."""
    ruleset = load_builtin()
    pages = {
        f"rules/{category.id}.md": {
            "examples": "\n".join(_examples(ruleset, category.id)),
            "rules": "\n".join(_rule_table(ruleset, category.id)),
        }
        for category in ruleset.categories
    }
    if (SHARED / "traces" / "INDEX.tsv").is_file():
        pages[str(COVERAGE)] = {"coverage": "\n".join(_coverage_table(ruleset))}
    return {path: _filled(path, blocks) for path, blocks in pages.items()}


def _filled(path: str, blocks: dict[str, str]) -> str:
    def block(match: re.Match[str]) -> str:
        what = match["what"]
        return f"<!-- generated: {what} -->\n{blocks[what]}\n<!-- end -->"

    return BLOCK.sub(block, (ROOT / path).read_text(encoding="utf-8"))


def _rules_of(ruleset: RuleSet, category: str) -> list[Rule]:
    return [rule for rule in ruleset.rules if rule.category == category]


def _examples(ruleset: RuleSet, category: str) -> Iterator[str]:
    for rule in _rules_of(ruleset, category):
        for name in rule.examples[:NAMES_PER_RULE]:
            short = name if len(name) <= NAME_WIDTH else f"{name[: NAME_WIDTH - 1]}…"
            yield f"- `{short}`"


def _rule_table(ruleset: RuleSet, category: str) -> Iterator[str]:
    yield "| rule | grade | evidence |"
    yield "| --- | --- | --- |"
    for rule in _rules_of(ruleset, category):
        places = "<br>".join(_place(entry) for entry in rule.evidence)
        yield f"| `{rule.id}` | {rule.grade} | {places} |"


def _place(entry: Evidence) -> str:
    return f"{entry.kind}: {entry.repo} `{entry.path}:{entry.lines[0]}`"


def _coverage_table(ruleset: RuleSet) -> Iterator[str]:
    yield "| trace | kernels | GPU time | validated | vendor | unlabelled |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    for path in _traces():
        trace = read_trace([path])
        cover = label_trace(trace, ruleset).coverage
        shares = [cover.validated, cover.vendor, cover.unlabelled]
        percent = " | ".join(f"{100 * part / cover.total:.1f} %" for part in shares)
        name = path.relative_to(SHARED / "traces")
        yield f"| `{name}` | {trace.count} | {trace.kernel_ns / 1e6:.1f} ms | {percent} |"


def _traces() -> Iterator[Path]:
    for path in sorted((SHARED / "traces").iterdir()):
        if path.is_dir() or path.suffix != ".tsv":
            yield path
