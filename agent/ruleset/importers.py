"""Rules of other tools -> a rule file: gputrc2graph's JSON and `category,pattern` CSV.

gputrc2graph (vLLM `tools/profiler/nsys_profile_tools`, SGLang `examples/profiler/
nsys_profile_tools`) reads `{engine: {model: {regex: category}}}` and labels a name by the first
regex Python's `re.search` finds in it. Its two catch-alls are `.*` (everything else), left out here
because what no rule matches is Unlabelled, and `CUDA mem` (copies and fills), which is Memcpy.

What cannot be a rule is left out and reported, one finding each; what is kept is graded `inferred`,
because nothing proves it, and declares that it overrides the categories after it.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent.core.proposals import Finding, Severity
from agent.core.rules import UNLABELLED, Category, CategoryId, Rule, RuleId
from agent.core.text import shown
from agent.core.vocabulary import VOCABULARY
from agent.errors import UsageError
from agent.ruleset.failure import rule_file_error
from agent.ruleset.patterns import check_pattern
from agent.ruleset.writing import file_text

_ALIASES = {
    "activation": "ActMul",
    "allreduce": "Comm",
    "attn": "Attention",
    "attention": "Attention",
    "bf16_gemm": "GEMM",
    "block_fp8_gemm": "GEMM",
    "communication": "Comm",
    "flash_attention": "Attention",
    "fp32_gemm": "GEMM",
    "fp8_deepgemm": "GEMM",
    "fp8_quantize": "Quant",
    "kv_cache": "KVCacheWrite",
    "memcpy": "Memcpy",
    "memops": "Memcpy",
    "moe_gemm": "MoEGEMM",
    "nccl": "Comm",
    "nccl_and_custom_ar": "Comm",
    "non-gpu-H_D_memops": "Memcpy",
    "quantize": "Quant",
    "reduce": "ReduceOP",
    "rms_norm": "RMSNorm",
    "silu_gate": "ActMul",
    "tf32_gemm": "GEMM",
}
_CATCH_ALL = frozenset({".*", "^.*$", ".+", ".*?", "^.*", "(.*)"})
_UNSAFE = frozenset(
    {"E_NON_ASCII", "E_TOO_LONG", "E_REGEX_SYNTAX", "E_NESTED_QUANTIFIER", "E_MATCHES_EMPTY"}
)
_FOLDED = re.compile(r"[^a-z0-9]")
_CATEGORY_ID = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,59}")
_NOT_IN_IDS = re.compile(r"[^A-Za-z0-9_.-]+")


@dataclass(frozen=True, slots=True)
class ForeignRule:
    """One rule of another tool: its pattern, its category, and where it stands."""

    pattern: str
    category: str
    location: str


@dataclass(frozen=True, slots=True)
class ImportedRules:
    """A rule file made of another tool's rules.

    `findings` has one for each rule that was left out or changed; `mapped` says which category
    became which; `declared` are categories the vocabulary does not have.
    """

    text: str
    rules: tuple[Rule, ...]
    findings: tuple[Finding, ...]
    mapped: Mapping[str, CategoryId]
    declared: tuple[CategoryId, ...]


def import_gputrc2graph(
    text: str,
    *,
    engine: str = "",
    model: str = "",
    categories: Mapping[str, str] | None = None,
    source: str = "engine_model.json",
) -> ImportedRules:
    """Read gputrc2graph's JSON; engine and model are needed where the file has several.

    `categories` says which of their categories is which of ours, before the built-in guesses.

    Raises:
        RuleFileError: the text is not JSON of that form.
        UsageError: the file has no such engine or model, or several and none was chosen.
    """
    loaded = _json(text, source)
    models = _chosen(loaded, engine, "engine", source)
    table = _chosen(models, model, "model", source)
    if not isinstance(table, _Pairs):
        raise _wrong_form(source)
    foreign: list[ForeignRule] = []
    for pattern, category in table:
        if not isinstance(category, str):
            raise _wrong_form(source)
        foreign.append(ForeignRule(pattern, category, source))
    return _imported(_last_value_first_place(foreign), categories or {})


def import_csv(
    text: str, *, categories: Mapping[str, str] | None = None, source: str = "rules.csv"
) -> ImportedRules:
    """Read a `category,pattern` CSV with a header; the first pattern that matches wins.

    Raises:
        RuleFileError: a column is missing or a row is too short; it carries all findings.
    """
    reader = csv.reader(io.StringIO(text.removeprefix("\ufeff")), strict=True)
    foreign: list[ForeignRule] = []
    findings: list[Finding] = []
    try:
        header = [cell.strip().lower() for cell in next(reader, [])]
        if "category" not in header or "pattern" not in header:
            message = "the header needs the columns category and pattern"
            raise rule_file_error([Finding("RS050", message, location=f"{source}:1")])
        columns = header.index("pattern"), header.index("category")
        for row in reader:
            location = f"{source}:{reader.line_num}"
            if not any(row):
                continue
            if len(row) != len(header):
                message = f"the row has {len(row)} cells, the header {len(header)}"
                findings.append(Finding("RS050", message, location=location))
                continue
            foreign.append(ForeignRule(row[columns[0]], row[columns[1]].strip(), location))
    except csv.Error as err:
        findings.append(Finding("RS050", f"not CSV: {err}", location=f"{source}:{reader.line_num}"))
    if findings:
        raise rule_file_error(findings)
    return _imported(foreign, categories or {})


class _Pairs(list[tuple[str, Any]]):
    """A JSON object with its keys in order, double ones kept."""


def _json(text: str, source: str) -> _Pairs:
    try:
        loaded = json.loads(text.removeprefix("\ufeff"), object_pairs_hook=_Pairs)
    except (ValueError, RecursionError) as err:
        line = getattr(err, "lineno", 1)
        message = f"not JSON: {getattr(err, 'msg', 'nested too deeply')}"
        raise rule_file_error([Finding("RS050", message, location=f"{source}:{line}")]) from err
    if not isinstance(loaded, _Pairs) or not loaded:
        raise _wrong_form(source)
    return loaded


def _chosen(pairs: object, wanted: str, what: str, source: str) -> Any:  # noqa: ANN401 - foreign JSON
    if not isinstance(pairs, _Pairs) or not pairs:
        raise _wrong_form(source)
    table = dict(pairs)
    if not wanted and len(table) == 1:
        return next(iter(table.values()))
    if wanted in table:
        return table[wanted]
    names = ", ".join(shown(name, limit=40) for name in sorted(table))
    message = f'no {what} "{shown(wanted, limit=40)}"' if wanted else f"several {what}s"
    raise UsageError("RS051", message, location=source, hint=f"--{what} takes one of: {names}")


def _wrong_form(source: str) -> Exception:
    message = "the JSON is not {engine: {model: {regex: category}}}"
    return rule_file_error([Finding("RS050", message, location=source)])


def _last_value_first_place(foreign: Sequence[ForeignRule]) -> list[ForeignRule]:
    """Fold a key given twice as Python's dict does: the first place, the last value."""
    return list({rule.pattern: rule for rule in foreign}.values())


def _imported(foreign: Sequence[ForeignRule], chosen: Mapping[str, str]) -> ImportedRules:
    for category in chosen.values():
        if not _CATEGORY_ID.fullmatch(category) or category == UNLABELLED:
            hint = "letters, digits, _ . and -, a letter first"
            message = f'"{shown(category, limit=60)}" cannot be a category'
            raise UsageError("RS051", message, hint=hint)
    findings: list[Finding] = []
    kept: list[ForeignRule] = []
    for rule in foreign:
        reason = _why_not(rule, kept)
        if reason:
            message = f'left out "{shown(rule.pattern, limit=100)}" ({shown(rule.category)}): '
            severity: Severity = "note" if rule.pattern in _CATCH_ALL else "warning"
            findings.append(Finding("RS052", message + reason, severity, location=rule.location))
        else:
            kept.append(rule)
    mapped = {rule.category: _category(rule.category, chosen) for rule in kept}
    declared = _declared(mapped)
    rules = _rules(kept, mapped)
    text = file_text(version=1, categories=declared, rules=rules)
    ids = tuple(category.id for category in declared)
    return ImportedRules(text, rules, tuple(findings), mapped, ids)


def _why_not(rule: ForeignRule, kept: Iterable[ForeignRule]) -> str:
    if rule.pattern in _CATCH_ALL:
        return "a catch-all; what no rule matches is Unlabelled"
    if not _FOLDED.sub("", rule.category.lower()).removeprefix("unlabelled"):
        return "it names no category"
    if any(rule.pattern == other.pattern for other in kept):
        return "the same pattern stands before it"
    unsafe = [finding for finding in check_pattern(rule.pattern) if finding.code in _UNSAFE]
    return unsafe[0].message if unsafe else ""


def _category(name: str, chosen: Mapping[str, str]) -> CategoryId:
    """Map a foreign category: as asked, by a known name, by the same letters, else its own."""
    if name in chosen:
        return CategoryId(chosen[name])
    if name in _ALIASES:
        return CategoryId(_ALIASES[name])
    folded = _FOLDED.sub("", name.lower())
    for known, _, _ in VOCABULARY:
        if known.lower() == folded:
            return CategoryId(known)
    own = _NOT_IN_IDS.sub("_", name).strip("_.-")[:60]
    return CategoryId(own if own[:1].isalpha() else f"X_{own}"[:60])


def _declared(mapped: Mapping[str, CategoryId]) -> tuple[Category, ...]:
    known = {category for category, _, _ in VOCABULARY}
    titles = {category: name for name, category in reversed(list(mapped.items()))}
    return tuple(
        Category(category, f"Imported: {shown(title, limit=200)}", "Others")
        for category, title in sorted(titles.items())
        if category not in known
    )


def _rules(kept: Sequence[ForeignRule], mapped: Mapping[str, CategoryId]) -> tuple[Rule, ...]:
    counts: dict[CategoryId, int] = {}
    rules: list[Rule] = []
    for index, foreign in enumerate(kept):
        category = mapped[foreign.category]
        counts[category] = counts.get(category, 0) + 1
        after = {mapped[other.category] for other in kept[index + 1 :]} - {category}
        rules.append(
            Rule(
                id=RuleId(f"imported.{category.lower()}.{counts[category]:02}"),
                category=category,
                kernel=foreign.pattern,
                grade="inferred",
                overrides=tuple(sorted(after)),
                note=f"imported from category {shown(foreign.category, limit=60)}",
            )
        )
    return tuple(rules)
