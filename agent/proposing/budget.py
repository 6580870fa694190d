"""Limits on what asking a model may cost; checked before each call, never after the fact."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from agent.errors import BudgetExhausted
from agent.proposing.providers.base import Usage

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Limits:
    """What a run may use; `turns` per family, the rest over all of them; 0 is no limit.

    `reply_tokens` bounds one reply.
    """

    turns: int = 12
    calls: int = 200
    tokens: int = 1_000_000
    deadline_s: float = 1_800
    reply_tokens: int = 1_500
    rejections: int = 2


@dataclass
class Budget:
    """What is left of the limits of a run; `clock` gives seconds, monotonic."""

    limits: Limits
    clock: Clock
    calls: int = 0
    usage: Usage = field(default_factory=Usage)
    _since: float = field(init=False)

    def __post_init__(self) -> None:
        """Start the clock."""
        self._since = self.clock()

    def remaining_s(self) -> float:
        """Give how many seconds are left; infinite without a deadline."""
        if not self.limits.deadline_s:
            return float("inf")
        return self.limits.deadline_s - (self.clock() - self._since)

    def check(self) -> None:
        """Make sure that one more call fits.

        Raises:
            BudgetExhausted: it does not.
        """
        limits = self.limits
        if limits.calls and self.calls >= limits.calls:
            raise _exhausted(f"{limits.calls} calls were made", "--max-calls")
        if limits.tokens and self.usage.total >= limits.tokens:
            raise _exhausted(f"{self.usage.total} tokens were used", "--max-tokens")
        if self.remaining_s() <= 0:
            raise _exhausted(f"{limits.deadline_s:g} s have passed", "--deadline")

    def spend(self, usage: Usage) -> None:
        """Count one answered call."""
        self.calls += 1
        self.usage += usage


def _exhausted(what: str, option: str) -> BudgetExhausted:
    hint = f"raise {option}, or run it again: what was answered is not asked again"
    return BudgetExhausted("PR003", f"the budget is used up: {what}", hint=hint)
