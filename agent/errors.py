"""Every failure the package can report, one class per way of handling it.

LabelAgentError
├─ UsageError              options or paths which make no sense together
├─ TraceError              a trace that cannot be read
│  ├─ UnknownTraceFormat   not a trace, or a known format that needs an export first
│  └─ CorruptTrace         damaged; names the byte, line or row
├─ RuleFileError           carries *all* findings of the file, not the first
├─ SourceError             a checkout that cannot answer
│  ├─ CheckoutNotFound
│  └─ CommitMismatch       the pinned commit is not in the checkout
├─ ReviewError             an accepted rule could not be written or committed
├─ ModelError              a model that cannot answer
│  ├─ ModelUnavailable     may be retried by the user later
│  ├─ ReplyFormatError     goes back to the model once
│  └─ BudgetExhausted      ends the episode, keeps the journal
└─ JournalError            damaged or out-of-order journal

A finding (a bad rule, a rejected proposal) is data, see `agent.core.proposals.Finding`; an
exception means that the command cannot give its answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent.core.proposals import Finding


class LabelAgentError(Exception):
    """A command cannot give its answer: `[LOCATION: ]CODE message`, then a hint."""

    def __init__(self, code: str, message: str, *, location: str = "", hint: str = "") -> None:
        """Keep the parts; `location` is `PATH`, `PATH:LINE` or empty."""
        super().__init__(message)
        self.code = code
        self.message = message
        self.location = location
        self.hint = hint

    def __reduce__(self) -> tuple[Any, ...]:
        """Keep all parts when another process sends the error here."""
        return type(self), (self.code, self.message), self.__dict__

    def __str__(self) -> str:
        """Give the one-line form, without the hint."""
        where = f"{self.location}: " if self.location else ""
        return f"{where}{self.code} {self.message}"


class UsageError(LabelAgentError):
    """Options or paths that make no sense together."""


class TraceError(LabelAgentError):
    """A trace cannot be read."""


class UnknownTraceFormat(TraceError):
    """The file is not a trace, or is a known format that needs an export first."""


class CorruptTrace(TraceError):
    """The file is damaged; the location names the byte, line or row."""


class RuleFileError(LabelAgentError):
    """A rule file cannot be used; `findings` holds everything wrong with it."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        findings: Sequence[Finding] = (),
        location: str = "",
        hint: str = "",
    ) -> None:
        super().__init__(code, message, location=location, hint=hint)
        self.findings = tuple(findings)


class SourceError(LabelAgentError):
    """A source checkout cannot answer."""


class CheckoutNotFound(SourceError):
    """No checkout at the given folder, or no checkout of that name."""


class CommitMismatch(SourceError):
    """The pinned commit is not in the checkout."""


class ReviewError(LabelAgentError):
    """An accepted rule could not be written or committed; nothing was changed."""


class ModelError(LabelAgentError):
    """A model cannot answer."""


class ModelUnavailable(ModelError):
    """The provider refused or did not answer in time."""


class ReplyFormatError(ModelError):
    """A reply does not follow the schema; the message goes back to the model once."""


class BudgetExhausted(ModelError):
    """A limit on turns, calls, tokens or time was reached."""


class JournalError(LabelAgentError):
    """The journal of proposals is damaged or out of order."""
