"""One error for all findings of a text."""

from __future__ import annotations

from collections.abc import Sequence

from agent.core.proposals import Finding
from agent.errors import RuleFileError


def rule_file_error(findings: Sequence[Finding]) -> RuleFileError:
    """Give the error that carries the findings; it speaks for the first and counts the rest."""
    first, more = findings[0], len(findings) - 1
    message = f"{first.message} (and {more} more)" if more else first.message
    return RuleFileError(
        first.code, message, findings=findings, location=first.location, hint=first.hint
    )
