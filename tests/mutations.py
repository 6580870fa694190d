"""Wrong proposals made from right ones: each mutation breaks exactly one thing that was true."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

Proposal = dict[str, Any]
SHIFTS = (-40, -7, -3, -2, -1, 1, 2, 3, 7, 40)
WRONG_GUARDS = (
    "self.never_true == fp8_dtype",
    "not torch.cuda.is_available()",
    "x.dtype != fp8_dtype and never",
    "envs.SOME_FLAG.get()",
)
WRONG_SNIPPETS = (
    "out = torch.empty_like(other_tensor)",
    "kernel_nobody_wrote[grid](a, b, c)",
    "launch_something_else(q, k, v, o)",
)


def mutations(right: list[Proposal]) -> Iterator[tuple[str, Proposal]]:
    """Yield (kind, line) for every mutation of every line `{"proposal": …, "context"?: …}`."""
    for index, line in enumerate(right):
        others = [one for one in right if one["proposal"] != line["proposal"]]
        yield from _moved_lines(line)
        yield from _other_places(line)
        yield from _spellings(line)
        yield from _repeated(line)
        yield from _claims(line)
        yield from _patterns(line)
        yield from _missing(line)
        yield from _borrowed(line, others, index)
        yield from _contexts(line)


def _edit(line: Proposal) -> tuple[Proposal, Proposal]:
    changed = copy.deepcopy(line)
    return changed, changed["proposal"]


def _each(line: Proposal) -> Iterator[tuple[int, Proposal]]:
    yield from enumerate(line["proposal"]["evidence"])


def _moved_lines(line: Proposal) -> Iterator[tuple[str, Proposal]]:
    for at, entry in _each(line):
        for shift in SHIFTS:
            changed, proposal = _edit(line)
            proposal["evidence"][at]["lines"] = [number + shift for number in entry["lines"]]
            yield f"{entry['kind']} line shifted by {shift}", changed
        for lines in ([0, 0], [10**7, 10**7], [entry["lines"][1], entry["lines"][0] - 1]):
            changed, proposal = _edit(line)
            proposal["evidence"][at]["lines"] = lines
            yield f"{entry['kind']} lines {lines}", changed
        changed, proposal = _edit(line)
        first, last = entry["lines"]
        proposal["evidence"][at]["lines"] = [max(first - 25, 1), last + 25]
        yield f"{entry['kind']} range widened past 40 lines", changed
        if entry["kind"] != "definition":
            changed, proposal = _edit(line)
            proposal["evidence"][at]["lines"] = [max(first - 2, 1), last + 2]
            yield f"{entry['kind']} range cut through its neighbours", changed


def _other_places(line: Proposal) -> Iterator[tuple[str, Proposal]]:
    entries = line["proposal"]["evidence"]
    for at, entry in _each(line):
        paths = [f"{entry['path']}x", entry["path"].upper(), f"../{entry['path']}"]
        paths += ["README.md", f"tests/{entry['path']}", f"/{entry['path']}"]
        paths += [other["path"] for other in entries if other["path"] != entry["path"]]
        for path in paths:
            changed, proposal = _edit(line)
            proposal["evidence"][at]["path"] = path
            yield f"{entry['kind']} path {path[:40]}", changed
        for commit in ("0" * 40, entry["commit"][:12], entry["commit"].upper(), "HEAD"):
            changed, proposal = _edit(line)
            proposal["evidence"][at]["commit"] = commit
            yield f"{entry['kind']} commit {commit[:12]}", changed
        for repo in ("vllm", entry["repo"].upper(), f"{entry['repo']}/"):
            changed, proposal = _edit(line)
            proposal["evidence"][at]["repo"] = repo
            yield f"{entry['kind']} repo {repo}", changed


def _spellings(line: Proposal) -> Iterator[tuple[str, Proposal]]:
    """Paths and quotes that look right to a reader and are not what stands in the checkout."""
    for at, entry in _each(line):
        path = entry["path"]
        for other in (
            f"./{path}", f"{path}/", path.replace("/", "//", 1), path.replace("/", "\\"), f"{path} ",
            f"{path}#L{entry['lines'][0]}", f"{path}:{entry['lines'][0]}", f"{path}\u200b",
            path.replace(".", "%2e"), path.replace("/", "\u2215", 1), path.rpartition("/")[0],
        ):  # fmt: skip
            changed, proposal = _edit(line)
            proposal["evidence"][at]["path"] = other
            yield f"{entry['kind']} path spelled {other[-40:]!r}", changed
        for snippet in (")", "pass  # as cited", "x\u202ey", "return"):
            changed, proposal = _edit(line)
            proposal["evidence"][at]["snippet"] = snippet
            yield f"{entry['kind']} snippet {snippet!r}", changed


def _repeated(line: Proposal) -> Iterator[tuple[str, Proposal]]:
    for _, entry in _each(line):
        if len(line["proposal"]["evidence"]) < 5:
            changed, proposal = _edit(line)
            proposal["evidence"].append(copy.deepcopy(entry))
            yield f"{entry['kind']} cited twice", changed


def _claims(line: Proposal) -> Iterator[tuple[str, Proposal]]:
    for at, entry in _each(line):
        for symbol in ("renamed_symbol", "Other.method", f"{entry.get('symbol', 'f')}_v2"):
            changed, proposal = _edit(line)
            proposal["evidence"][at]["symbol"] = symbol
            yield f"{entry['kind']} symbol {symbol}", changed
        for snippet in WRONG_SNIPPETS:
            changed, proposal = _edit(line)
            proposal["evidence"][at]["snippet"] = snippet
            yield f"{entry['kind']} snippet", changed
        if entry["kind"] == "emission":
            guards = list(WRONG_GUARDS)
            if entry.get("guard"):
                guards += [f"not ({entry['guard']})", f"{entry['guard']} and extra"]
            for guard in guards:
                changed, proposal = _edit(line)
                proposal["evidence"][at]["guard"] = guard
                yield f"guard {guard}", changed
        for kind in ("definition", "table", "binary", "template", "instantiation", "emission"):
            if kind != entry["kind"] and {kind, entry["kind"]} != {"definition", "template"}:
                changed, proposal = _edit(line)
                proposal["evidence"][at]["kind"] = kind
                yield f"{entry['kind']} said to be {kind}", changed
    for key in ("level", "validated", "grade", "confidence"):
        changed, proposal = _edit(line)
        proposal[key] = "L4"
        yield f"grades itself with {key}", changed
    changed, proposal = _edit(line)
    proposal["rationale"] = "removed upstream in PR #24129"
    yield "claims history", changed


def _patterns(line: Proposal) -> Iterator[tuple[str, Proposal]]:
    pattern = line["proposal"]["kernel"]
    wider = [
        ".*", "", "kernel", "_kernel", ".*kernel.*", "[a-z_]+", "^.+$", "gemm|reduce|copy|norm",
        "triton|aiter|void|_fwd", "(?i)" + pattern, f"(?:{pattern})?", f"{pattern}|gemm",
        f"(({pattern})+)+", "(?<!x)" + pattern, pattern + "(", "nothing_matches_this_kernel_name",
        f"^{'x' * 401}$", f"{pattern}\u001b", f"{pattern}é",
    ]  # fmt: skip
    for changed_pattern in wider:
        changed, proposal = _edit(line)
        proposal["kernel"] = changed_pattern
        yield f"pattern {changed_pattern[:40]!r}", changed
    for category in ("mla", "Others", "Unlabelled", "Attention ", "CastFromFp8", "GEMM\u200b"):
        changed, proposal = _edit(line)
        proposal["category"] = category
        yield f"category {category!r}", changed
    changed, proposal = _edit(line)
    proposal["kernels"] = ["some_other_kernel_name_entirely"]
    yield "declares a kernel it does not match", changed


def _missing(line: Proposal) -> Iterator[tuple[str, Proposal]]:
    entries = line["proposal"]["evidence"]
    for at, entry in _each(line):
        changed, proposal = _edit(line)
        del proposal["evidence"][at]
        yield f"without its {entry['kind']}", changed
    changed, proposal = _edit(line)
    proposal["evidence"] = (entries * 6)[:6]
    yield "six pieces of evidence", changed


def _borrowed(line: Proposal, others: list[Proposal], index: int) -> Iterator[tuple[str, Proposal]]:
    """Evidence of other kernels, a few each so that every pair of kinds occurs."""
    mine = {entry["path"] for _, entry in _each(line)}
    for at, entry in _each(line):
        lent = [
            other
            for line_ in others
            if not mine & {one["path"] for one in line_["proposal"]["evidence"][:1]}
            for other in line_["proposal"]["evidence"]
            if other["kind"] == entry["kind"]
            and (other["path"], other["lines"]) != (entry["path"], entry["lines"])
        ]
        for other in lent[index % 3 :: 3]:
            changed, proposal = _edit(line)
            proposal["evidence"][at] = copy.deepcopy(other)
            yield (
                f"{entry['kind']} of another kernel ({other['path']}:{other['lines'][0]})",
                changed,
            )


def _contexts(line: Proposal) -> Iterator[tuple[str, Proposal]]:
    paths = [entry["path"] for entry in line["proposal"]["evidence"]]
    repos = {entry["repo"] for entry in line["proposal"]["evidence"]}
    contexts: list[dict[str, str]] = []
    if any(path.endswith("aiter_backend.py") for path in paths):
        contexts.append({"backend": "cuda"})
        contexts.append({"backend": "cuda", "attention": "flashinfer"})
        contexts.append({"attention": "triton", "backend": "rocm"})
    if any("gfx942" in path for path in paths):
        contexts.append({"arch": "gfx950"})
        contexts.append({"arch": "gfx90a"})
    if repos == {"aiter"}:
        contexts.append({"backend": "cuda"})
    for context in contexts:
        changed, _ = _edit(line)
        changed["context"] = {**changed.get("context", {}), **context}
        yield f"run {context}", changed
