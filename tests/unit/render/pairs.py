"""Comparisons to render: a plain pair, a hostile one, one that may not be concluded from."""

from __future__ import annotations

from dataclasses import replace

from agent.compare.table import TraceDiff, compare_traces
from agent.core.rules import LabelledTrace
from tests.builders import evidence, signature
from tests.unit.compare.runs import graph_rank, rules_for, run

HOSTILE = (
    "<script>document.title='owned'</script>",
    '"><img src=x onerror="document.title=\'owned\'">',
    "'; alert(1); //",
    "</style></script></svg><b>bold</b>",
    "[link](javascript:alert(1)) ![i](http://x/y.png) `code` | cell",
    "[bold red]rich[/bold red] [/] :warning: {{template}} ${x} %s",
    "\x1b[31mred\x1b[0m\x07\u202eright-to-left\u200b\udcff",
    '=HYPERLINK("http://x","y")',
    "@team +1 -1 \t\r\n::error::owned",
    "k<" + "unsigned short, " * 300 + ">",
)


def plain() -> TraceDiff:
    """Nine passes against ten; a cast introduced, with the source lines of its rule."""
    rules = rules_for({"GEMM", "MLA", "RMSNorm", "CastFromFP8"})
    pinned = evidence(
        kind="emission",
        commit="21c4fc6334d1" + "0" * 28,
        path="python/backend.py",
        lines=(7, 8),
        symbol="Backend.forward",
        guard="self.dtype == fp8",
        snippet="k = k.to(dtype)\nv = v.to(dtype)",
    )
    rules = replace(
        rules,
        rules=tuple(
            replace(one, evidence=(pinned,), grade="validated")
            if one.category == "CastFromFP8"
            else one
            for one in rules.rules
        ),
    )
    cast = signature("CastFromFP8/copy", op="aten::copy_")
    base = {"GEMM/a": (200, 2_000_000), "MLA/old": (100, 900_000), "RMSNorm/n": (300, 300_000)}
    new = {
        "GEMM/a": (180, 1_820_000),
        "MLA/new": (90, 500_000),
        "RMSNorm/n": (270, 271_000),
        cast: (90, 270_000),
        "Unlabelled/odd": (9, 4_000),
    }
    return compare_traces(
        run(base, base, name="bf16", rules=rules), run(new, new, name="fp8", rules=rules)
    )


def hostile() -> TraceDiff:
    """Every foreign string is an attack: kernels, categories, run names, ops, sources."""
    base = {f"Unlabelled/{text}": (1, 1_000 + n) for n, text in enumerate(HOSTILE)}
    new = {
        signature(f"{text}/k", op=text): (2, 3_000 + n)
        for n, text in enumerate(one.replace("/", "") for one in HOSTILE)
    }
    categories = {one.name.split("/")[0] for one in new}
    rules = rules_for(categories)
    cited = evidence(
        path=HOSTILE[0], symbol=HOSTILE[1], guard=HOSTILE[3], snippet="\n".join(HOSTILE)
    )
    rules = replace(
        rules,
        name=HOSTILE[0],
        rules=tuple(replace(one, evidence=(cited,), source=HOSTILE[1]) for one in rules.rules),
    )
    return compare_traces(
        run(base, name=HOSTILE[0], rules=rules), run({**base, **new}, name=HOSTILE[4], rules=rules)
    )


def by_rank() -> TraceDiff:
    """Eight ranks, of which the fourth alone waits for the others, and only in the new run."""
    base = {"GEMM/a": (200, 2_000_000), "Comm/c": (100, 900_000), "RMSNorm/n": (300, 300_000)}
    new = {"GEMM/a": (200, 2_100_000), "Comm/c": (100, 890_000), "RMSNorm/n": (300, 301_000)}
    slow = {**new, "Comm/c": (100, 1_500_000), "Cast/k": (100, 70_000)}
    rules = rules_for({"GEMM", "Comm", "RMSNorm", "Cast"})
    return compare_traces(
        run(*[base] * 8, name="bf16", rules=rules),
        run(*[new] * 3, slow, *[new] * 4, name="fp8", rules=rules),
        by="rank",
    )


def incomplete() -> TraceDiff:
    """The new side lost kernels of its replays."""
    full = ("GEMM/a", "MLA/b", "MLA/b")
    return compare_traces(run(graph_rank(full, full)), run(graph_rank(full, ())))


def wide() -> TraceDiff:
    """Names and categories of wide letters, and one as long as a C++ template."""
    letters = "漢字" * 50
    rules = rules_for({letters, "A" * 300})
    base = {f"{'A' * 300}/{'a' * 900}": (3, 5_000_000_000)}
    return compare_traces(
        run(base, base, name=letters, rules=rules),
        run({**base, f"{letters}/{letters}": (2, 10**9)}, base, name=letters, rules=rules),
    )


def one_run() -> LabelledTrace:
    """A run of one rank with a kernel no rule names."""
    return run({"GEMM/a": (4, 400_000), "Unlabelled/odd": (2, 100_000)}, name="decode.json")


def long_names() -> LabelledTrace:
    """A run whose kernels have no space to break at."""
    tile = "MT128x256x32_MI16x16x1_SN_" * 9
    kernels = {f"GEMM/Cijk_Alik_Bljk_{tile}": (4, 400_000), f"Unlabelled/{tile}": (2, 100_000)}
    return run(kernels, name="decode.json")
