"""The order of the gate's findings: the one that tells most about what is wrong comes first."""

from __future__ import annotations

from agent.core.proposals import Finding

_WEIGHT = (
    # The proposal is not one, or claims what only the gate may say.
    "E_UNVERIFIABLE_CLAIM", "E_CATEGORY", "E_NON_ASCII", "E_TOO_LONG",
    "E_REGEX_SYNTAX", "E_MATCHES_EMPTY", "E_NESTED_QUANTIFIER",
    # The place is not readable.
    "E_PATH_UNSAFE", "E_PATH_SYMLINK", "E_SUBMODULE", "E_PATH_NOT_IN_TREE", "E_REPO_UNKNOWN",
    "E_COMMIT_UNKNOWN", "E_COMMIT_MIXED", "E_BLOB_MISSING", "E_LFS_POINTER", "E_TOO_LARGE",
    "E_NON_RUNTIME_PATH", "E_KIND", "E_LINE_RANGE", "E_TOO_MANY_LINES", "E_PARSE",
    # The place belongs to another run.
    "E_BACKEND_MISMATCH", "E_ARCH_GUARD", "E_ARCH_MISMATCH", "E_MODEL_GUARD", "E_NOT_BUILT",
    # The place holds something else.
    "E_IN_COMMENT", "E_IN_STRING", "E_DIRECTION", "E_DTYPE_MISMATCH", "E_NOT_A_CAST", "E_LOOKALIKE",
    "E_GUARD_MISMATCH", "E_SNIPPET", "E_SNIPPET_RAW", "E_SYMBOL", "E_NOT_IN_FUNCTION",
    "E_IN_KERNEL", "E_IN_STUB", "E_UNREACHABLE",
    # The pattern takes too much or too little.
    "E_OVERFIT", "E_STEALS", "E_NOT_DECIDABLE", "E_NOT_LAUNCHED", "E_NO_KERNEL_MATCHED",
    "E_NAME_MISMATCH", "E_NO_MATCHING_NODE", "E_TEMPLATE_TOO_SHORT", "E_BINARY", "E_BINARY_MISSING",
    "E_SYMBOL_MISSING", "E_AMBIGUOUS", "E_UNPROVEN_KERNEL", "E_STACK", "E_GENERIC", "E_NO_LITERAL",
    "E_CUTS_WORD", "E_NEAR_NAME", "E_DEBUG_ONLY", "E_OTHER_COMMIT", "E_EXTERNAL",
    "E_MISSING_EVIDENCE", "E_SCHEMA",
)  # fmt: skip
_ORDER = {code: index for index, code in enumerate(_WEIGHT)}
_SEVERITY = {"error": 0, "warning": 1, "note": 2}


def by_weight(finding: Finding) -> tuple[int, int, str, str]:
    """Give the sort key of a finding."""
    weight = _ORDER.get(finding.code, len(_WEIGHT))
    return _SEVERITY[finding.severity], weight, finding.code, finding.location
