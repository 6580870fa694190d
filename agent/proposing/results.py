"""What asking for one family came to, whoever was asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from agent.core.proposals import Verdict
from agent.proposing.families import Family
from agent.proposing.providers.base import Usage

Answer = Literal["admitted", "rejected", "abstained", "failed", "unasked"]
"""`rejected` by the gate, `failed` by unusable replies, `unasked` left for another run."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What one family came to; `reason` is why there is no admitted proposal.

    `turns` and `usage` are what asking cost now; replies that were kept cost nothing. `sourced`
    tells whether the checkouts hold anything that could be its source. `hint` is what to do where
    the asking itself ended here.
    """

    family: Family
    answer: Answer
    verdict: Verdict | None = None
    reason: str = ""
    turns: int = 0
    usage: Usage = field(default_factory=Usage)
    sourced: bool = True
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """Progress: family `number` of `total`, what is being done for it, tokens of the run so far."""

    number: int
    total: int
    family: Family
    doing: str
    tokens: int


Watch = Callable[[Step], None]
