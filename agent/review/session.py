"""The review: one admitted proposal after the other, decided by a person or by a flag.

The terminal and everything with an effect come in as values (`Console`, `Desk`), so a test plays
both. Enter alone accepts nothing; the end of the input quits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from agent.core.proposals import Action, Decision, Finding, Proposal, Verdict
from agent.core.rules import Rule
from agent.core.text import shown
from agent.errors import ReviewError, RuleFileError
from agent.review.commit import Committed
from agent.review.display import Line, ReadSource, Style, found, presented, summary
from agent.review.draft import Draft, Moves
from agent.review.edit import edit_text, edited, with_change

State = Literal["accepted", "rejected", "skipped", "pending", "refused"]
"""`rejected` by the person, `refused` by the gate, `pending` not yet decided."""

NOT_REACHED = "the review ended before it"
KEYS = "[a]ccept [r]eject [e]dit [s]kip [q]uit [?]"
_WORDS = {"accept": "a", "reject": "r", "edit": "e", "skip": "s", "quit": "q", "help": "?"}
_HELP = (
    "a  accept: write the diff above into the rule file and commit that file alone",
    "r  reject: ask for a reason, keep it, and never ask again",
    "e  edit: change the rule; the gate judges the result",
    "s  skip: leave it for another review",
    "q  quit: leave this and all others for another review",
    "Enter alone does nothing.",
)
_INLINE = ("kernel", "category", "op")


class Console(Protocol):
    """Where a review is shown and answered. Text given to it is fit to be shown."""

    def line(self, text: str, style: Style = "plain") -> None:
        """Show one line."""
        ...

    def ask(self, prompt: str) -> str | None:
        """Ask for one line; None at the end of the input."""
        ...

    def edit(self, text: str) -> str | None:
        """Let the person edit a text in their editor; None where there is none or it failed."""
        ...


@dataclass(frozen=True, slots=True)
class Desk:
    """What a review can do, each as one callable.

    Attributes:
        judge: asks the gate under the rules in force now.
        draft: drafts the next rule file; raises `RuleFileError` where it cannot take the rule.
        accept: records the decision, writes and commits; raises `ReviewError` with nothing changed.
        decide: records any other decision.
        read: reads source lines at the pinned commit.
        reviewer: the git author.
    """

    judge: Callable[[Proposal], Verdict]
    draft: Callable[[Verdict], Draft]
    accept: Callable[[Verdict, Draft, Decision], Committed]
    decide: Callable[[Decision], None]
    read: ReadSource
    reviewer: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one proposal."""

    verdict: Verdict
    state: State
    rule: Rule | None = None
    moves: Moves | None = None
    committed: Committed | None = None
    reason: str = ""


class _Quit(Exception):
    """The person ends the review."""


def review(
    verdicts: Sequence[Verdict], desk: Desk, console: Console, *, accept_validated: bool = False
) -> tuple[Outcome, ...]:
    """Decide on each verdict in turn; those not reached stay pending.

    With `accept_validated` nobody is asked: what is validated and free of conflicts is accepted.

    Raises:
        ReviewError: with `accept_validated`, an accepted rule could not be committed.
    """
    session = _Session(desk, console, accept_validated=accept_validated)
    outcomes: list[Outcome] = []
    for number, verdict in enumerate(verdicts, 1):
        try:
            outcomes.append(session.settle(verdict, f"{number}/{len(verdicts)}"))
        except _Quit:
            rest = verdicts[number - 1 :]
            return (*outcomes, *(Outcome(left, "pending", reason=NOT_REACHED) for left in rest))
    return tuple(outcomes)


def conflicts(verdict: Verdict, draft: Draft) -> bool:
    """Tell whether a person has to look: a warning of the gate, or a validated rule loses."""
    losers = {rule_id for move in draft.moves.moves for rule_id in move.rules}
    by_id = draft.ruleset.by_id
    validated = any(by_id[rule_id].grade == "validated" for rule_id in losers if rule_id in by_id)
    return validated or any(finding.severity == "warning" for finding in verdict.findings)


class _Session:
    """One review; holds no state between proposals."""

    def __init__(self, desk: Desk, console: Console, *, accept_validated: bool) -> None:
        self._desk = desk
        self._console = console
        self._accept_validated = accept_validated

    def settle(self, kept: Verdict, position: str) -> Outcome:
        """Judge a proposal again, show it, and decide."""
        verdict = self._desk.judge(kept.proposal)
        if not verdict.admitted:
            self._show(Line(f"{position}  no longer admitted: {_title(verdict)}", "heading"))
            self._show(*found(verdict.findings))
            return Outcome(verdict, "refused")
        try:
            draft = self._desk.draft(verdict)
        except RuleFileError as err:
            title = Line(f"{position}  the rule file cannot take {_title(verdict)}", "heading")
            self._show(title, *found(err.findings or (Finding(err.code, err.message),)))
            if self._accept_validated:
                return Outcome(verdict, "pending", reason=err.message)
            return self._ask(verdict, None, position)
        self._show(*presented(verdict, draft, self._desk.read, position=position))
        if self._accept_validated:
            return self._accept_unasked(verdict, draft)
        return self._ask(verdict, draft, position)

    def _accept_unasked(self, verdict: Verdict, draft: Draft) -> Outcome:
        if conflicts(verdict, draft):
            self._show(Line("kept for a review: a person has to look at it"))
            return Outcome(verdict, "pending", draft.rule, draft.moves)
        return self._accept(verdict, draft)

    def _ask(self, verdict: Verdict, draft: Draft | None, position: str) -> Outcome:
        """Ask until something is decided; without a draft nothing can be accepted."""
        while True:
            if draft is not None:
                self._show(Line(), summary(verdict, draft, position=position))
            match self._key():
                case "a":
                    accepted = self._try_to_accept(verdict, draft)
                    if accepted is not None:
                        return accepted
                case "r":
                    return self._reject(verdict, draft)
                case "e":
                    changed = self._edit(verdict)
                    if changed is not None:
                        return self._after_edit(verdict, changed, position)
                case "s":
                    self._desk.decide(self._decision(verdict, "skip"))
                    return _outcome(verdict, "skipped", draft)
                case "q":
                    raise _Quit
                case _:
                    self._show(*(Line(text) for text in _HELP))

    def _key(self) -> str:
        """Ask until something is answered that has a meaning; the end of the input quits."""
        while True:
            answer = self._console.ask(f"{KEYS} ")
            if answer is None:
                return "q"
            answer = answer.strip().lower()
            key = _WORDS.get(answer, answer)
            if key in _WORDS.values():
                return key
            if answer:
                self._show(Line(f'"{shown(answer, limit=40)}" is none of {KEYS}', "warning"))

    def _accept(self, verdict: Verdict, draft: Draft) -> Outcome:
        done = self._desk.accept(verdict, draft, self._decision(verdict, "accept"))
        self._show(Line(f"accepted {shown(draft.rule.id)}: commit {shown(done.place)}", "heading"))
        return Outcome(verdict, "accepted", draft.rule, draft.moves, done)

    def _try_to_accept(self, verdict: Verdict, draft: Draft | None) -> Outcome | None:
        """Accept, or say why that cannot be."""
        if draft is None:
            self._show(Line("the rule file cannot take it as it is", "warning"))
            return None
        try:
            return self._accept(verdict, draft)
        except ReviewError as err:
            self._error(err)
            return None

    def _reject(self, verdict: Verdict, draft: Draft | None) -> Outcome:
        reason = self._console.ask("reason: ")
        if reason is None:
            raise _Quit
        self._desk.decide(self._decision(verdict, "reject", reason.strip()))
        return _outcome(verdict, "rejected", draft, reason=reason.strip())

    def _edit(self, verdict: Verdict) -> Verdict | None:
        """Let the person change the proposal until the gate admits it; None to go back."""
        proposal = verdict.proposal
        while True:
            changed = self._changed(proposal)
            if changed is None or (
                isinstance(changed, Proposal) and changed.id == verdict.proposal.id
            ):
                self._show(Line("nothing was changed"))
                return None
            if isinstance(changed, Proposal):
                proposal = replace(changed, origin=verdict.proposal.origin)
                judged = self._desk.judge(proposal)
                if judged.admitted:
                    return judged
                self._show(Line("the gate rejects the edited rule", "warning"))
                self._show(*found(judged.findings))
            else:
                self._show(*found([changed]))
            again = self._console.ask("[e]dit again, or Enter to go back: ")
            if again is None or again.strip().lower() not in {"e", "edit"}:
                return None

    def _changed(self, proposal: Proposal) -> Proposal | Finding | None:
        try:
            text = self._console.edit(edit_text(proposal))
        except RuleFileError as err:
            return Finding(err.code, err.message)
        return self._changed_inline(proposal) if text is None else edited(text)

    def _changed_inline(self, proposal: Proposal) -> Proposal | Finding | None:
        """Ask field by field where there is no editor; Enter keeps a field."""
        changed: Proposal | Finding = proposal
        for key in _INLINE:
            answer = self._console.ask(f"{key} [{shown(getattr(proposal, key), limit=400)}]: ")
            if answer is None:
                return None
            if answer.strip() and isinstance(changed, Proposal):
                changed = with_change(changed, key, answer.strip())
        return changed

    def _after_edit(self, verdict: Verdict, changed: Verdict, position: str) -> Outcome:
        self._desk.decide(self._decision(verdict, "edit", f"became {changed.proposal.id}"))
        return self.settle(changed, f"{position} (edited)")

    def _decision(self, verdict: Verdict, action: Action, reason: str = "") -> Decision:
        return Decision(verdict.proposal.id, action, self._desk.reviewer, reason)

    def _error(self, err: ReviewError) -> None:
        self._show(Line(shown(str(err)), "warning"))
        if err.hint:
            self._show(Line(f"hint: {shown(err.hint)}", "dim"))

    def _show(self, *lines: Line) -> None:
        for line in lines:
            self._console.line(line.text, line.style)


def _outcome(verdict: Verdict, state: State, draft: Draft | None, *, reason: str = "") -> Outcome:
    rule, moves = (draft.rule, draft.moves) if draft is not None else (None, None)
    return Outcome(verdict, state, rule, moves, reason=reason)


def _title(verdict: Verdict) -> str:
    proposal = verdict.proposal
    return f"{shown(proposal.category)} {shown(proposal.kernel, limit=160)}"


def count_states(outcomes: Sequence[Outcome]) -> Iterator[tuple[State, int]]:
    """Count the outcomes by state, in a fixed order, without zeros."""
    states: tuple[State, ...] = ("accepted", "rejected", "skipped", "pending", "refused")
    for state in states:
        if number := sum(outcome.state == state for outcome in outcomes):
            yield state, number
