"""The loop: a family's case goes to a model, which looks, proposes or abstains; the gate judges.

Everything with an effect comes in as a callable: the gate, the journal, the clock. The whole
conversation follows from the dossier and the replies, so replies that were kept replay it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from agent.core.proposals import Origin, Proposal, Verdict
from agent.core.rules import LabelledTrace
from agent.core.source import SourceIndex
from agent.errors import BudgetExhausted, ModelUnavailable, ReplyFormatError
from agent.proposing.actions import (
    WITHOUT_SOURCE,
    Abstain,
    Action,
    SubmitProposal,
    read_action,
    reply_schema,
)
from agent.proposing.budget import Budget
from agent.proposing.case import case_text, system_text
from agent.proposing.dossier import Dossier
from agent.proposing.drafts import proposal_of
from agent.proposing.prompts import Prompt, quoted
from agent.proposing.providers.base import Message, Provider, Reply, Request, Usage
from agent.proposing.recorder import Recorder, request_digest
from agent.proposing.results import Answer, Asked, Step, Watch
from agent.proposing.tools import Question, Toolbox

Judge = Callable[[Proposal], Verdict]
PROMPTS = ("system", "family", "result", "rejected", "repair")
REFUSED = "ML013"
"""Refused by a server that answered before: it is this one request, most likely its length."""
_CALL_S = 600.0
_ECHO = 4_000
_FINDINGS = 6
_OPENING = 2


@dataclass(frozen=True)
class Asking:
    """What every conversation of a run shares.

    Attributes:
        prompts: by name, all of `PROMPTS`; `prompts_digest` stands for all their texts.
        origin: run and tool of a proposal's origin; the rest is filled from the replies.
        names_only: no text of a checkout is sent.
    """

    provider: Provider
    prompts: dict[str, Prompt]
    prompts_digest: str
    source: SourceIndex
    labelled: LabelledTrace
    judge: Judge
    budget: Budget
    recorder: Recorder = field(default_factory=Recorder)
    origin: Origin = field(default_factory=Origin)
    names_only: bool = False
    watch: Watch = lambda _step: None

    @property
    def allowed(self) -> frozenset[str] | None:
        """The actions a model may use; None for all."""
        return WITHOUT_SOURCE if self.names_only else None


def propose_families(dossiers: Sequence[Dossier], asking: Asking) -> Iterator[Asked]:
    """Ask about each family in turn, except where no rule could ever be proven.

    What is wrong with one family's replies ends that family alone. A model that cannot be reached
    and a budget that is used up end the asking; what is left is given back as unasked.
    """
    ended = ""
    for number, dossier in enumerate(dossiers, 1):
        if dossier.unprovable:
            yield Asked(dossier.family, "abstained", reason=dossier.unprovable)
            continue
        if ended:
            yield Asked(dossier.family, "unasked", reason=ended)
            continue
        talk = Conversation(dossier, asking, number, len(dossiers))
        try:
            yield talk.settle()
        except (ModelUnavailable, BudgetExhausted) as err:
            if talk.began and err.code == REFUSED:
                yield talk.ended("failed", str(err))
                continue
            ended = f"asking had ended ({err.code})"
            yield replace(talk.ended("unasked", str(err)), hint=err.hint)


def first_request(dossier: Dossier, asking: Asking) -> Request:
    """Give what would be sent first about a family."""
    return Conversation(dossier, asking, 1, 1).request()


class Conversation:
    """One family's exchange with a model."""

    def __init__(self, dossier: Dossier, asking: Asking, number: int, total: int) -> None:
        self._dossier = dossier
        self._asking = asking
        self._place = (number, total)
        self._tools = Toolbox(asking.source, asking.labelled, dossier.family)
        self._messages = _opening(dossier, asking)
        self._verdicts: dict[str, Verdict] = {}
        self._rejections = 0
        self._looked: set[Question] = set()
        self._turns = 0
        self._usage = Usage()
        self._reply = Reply("")

    @property
    def began(self) -> bool:
        """Tell whether the model answered already."""
        return len(self._messages) > _OPENING

    def request(self) -> Request:
        """Give the next request; what the family is labelled already is no answer."""
        limits = self._asking.budget.limits
        held = {member.label.category for member in self._dossier.family.members}
        every = self._asking.labelled.ruleset.categories
        categories = [str(one.id) for one in every if one.id not in held]
        schema = reply_schema(categories, allowed=self._asking.allowed)
        model = self._asking.provider.model
        return Request(model, tuple(self._messages), schema, limits.reply_tokens)

    def settle(self) -> Asked:
        """Ask until the family is settled.

        Raises:
            ModelUnavailable, BudgetExhausted: nothing more can be asked in this run.
        """
        limits = self._asking.budget.limits
        broken = ""
        for turn in range(1, limits.turns + 1):
            self._reply = self._exchange(turn)
            try:
                asked = self._act(self._action(), limits.turns - turn)
            except ReplyFormatError as err:
                if broken:
                    return self.ended("failed", f"two unusable replies: {err.message}")
                broken = err.message
                repair = self._asking.prompts["repair"]
                self._say(repair.filled(message=quoted([err.message], limit=900)))
                continue
            broken = ""
            if asked is not None:
                return asked
        if self._verdicts:
            return self._rejected(f"not corrected within {limits.turns} turns")
        return self.ended("failed", f"nothing was submitted within {limits.turns} turns")

    def ended(self, answer: Answer, reason: str = "", verdict: Verdict | None = None) -> Asked:
        """Give what the family came to."""
        family, sourced = self._dossier.family, bool(self._dossier.candidates)
        return Asked(family, answer, verdict, reason, self._turns, self._usage, sourced)

    def _exchange(self, turn: int) -> Reply:
        """Give the reply to the next request: a kept one, or a new one that is kept first."""
        asking, request = self._asking, self.request()
        digest = request_digest(asking.provider, request)
        known = asking.recorder.find(digest)
        if known is not None:
            return known
        asking.budget.check()
        self._tell("asking" if turn == 1 else f"turn {turn}")
        reply = self._complete(request)
        asking.budget.spend(reply.usage)
        self._turns += 1
        self._usage += reply.usage
        asking.recorder.keep(digest, self._dossier.family.stem, turn, reply)
        return reply

    def _complete(self, request: Request) -> Reply:
        provider = self._asking.provider
        seconds = min(self._asking.budget.remaining_s(), _CALL_S)
        try:
            return provider.complete(request, deadline_s=seconds)
        except ReplyFormatError:
            return Reply("", model=provider.model, finish="other", host=provider.host)

    def _action(self) -> Action:
        action = read_action(self._reply)
        allowed = self._asking.allowed
        if allowed is not None and action.do not in allowed:
            raise ReplyFormatError("ML030", f"{action.do} is not among the actions")
        return action

    def _act(self, action: Action, left: int) -> Asked | None:
        match action:
            case Abstain():
                return self.ended("abstained", action.reason or "no reason was given")
            case SubmitProposal():
                proposal = proposal_of(action, self._dossier, self._asking.source)
                return self._judged(replace(proposal, origin=self._origin()))
            case _:
                self._look(action, left)
                return None

    def _look(self, question: Question, left: int) -> None:
        if question in self._looked:
            raise ReplyFormatError("ML030", "that was asked before and its result stands above")
        self._looked.add(question)
        self._tell(question.do.replace("_", " "))
        result = self._tools.answer(question)
        filled = self._asking.prompts["result"].filled(
            action=question.do, result=result, turns=str(left)
        )
        self._say(filled)

    def _judged(self, proposal: Proposal) -> Asked | None:
        self._tell("judging")
        repeated = proposal.id in self._verdicts
        verdict = self._verdicts.pop(proposal.id, None) or self._asking.judge(proposal)
        self._verdicts[proposal.id] = verdict
        if verdict.admitted:
            return self.ended("admitted", verdict=verdict)
        self._rejections += 1
        if self._rejections > self._asking.budget.limits.rejections:
            return self._rejected()
        self._say(self._feedback(verdict, repeated=repeated))
        return None

    def _rejected(self, note: str = "") -> Asked:
        verdict = list(self._verdicts.values())[-1]
        errors = verdict.errors
        reason = f"{errors[0].code} {errors[0].message}" if errors else f"only {verdict.level}"
        return self.ended("rejected", f"{reason}; {note}" if note else reason, verdict)

    def _feedback(self, verdict: Verdict, *, repeated: bool) -> str:
        lines = ["the same proposal was rejected before"] if repeated else []
        lines += _unmet(verdict)
        for finding in verdict.errors[:_FINDINGS]:
            if self._asking.names_only:
                lines.append(finding.code)
                continue
            hint = f" (hint: {finding.hint})" if finding.hint else ""
            lines.append(f"{finding.code}: {finding.message}{hint}")
        left = self._asking.budget.limits.rejections - self._rejections + 1
        tries = f"{left} more proposals will be judged." if left > 1 else "It is the last try."
        prompt = self._asking.prompts["rejected"]
        return prompt.filled(findings=quoted(lines, limit=700), left=tries)

    def _say(self, text: str) -> None:
        said = self._reply.text[:_ECHO].strip() or "(nothing)"
        self._messages += [Message("assistant", said), Message("user", text)]

    def _origin(self) -> Origin:
        provider, reply = self._asking.provider, self._reply
        return replace(
            self._asking.origin,
            provider=provider.name,
            model=provider.model,
            model_returned=reply.model,
            host=reply.host or provider.host,
            fingerprint=reply.fingerprint,
            prompt=self._asking.prompts["family"].reference,
            prompt_digest=self._asking.prompts_digest,
        )

    def _tell(self, doing: str) -> None:
        number, total = self._place
        tokens = self._asking.budget.usage.total
        self._asking.watch(Step(number, total, self._dossier.family, doing, tokens))


def _unmet(verdict: Verdict) -> Iterator[str]:
    """Say where conditions keep a rule from every kernel: models fill in what may stay empty."""
    proposal = verdict.proposal
    stated = [key for key in ("op", "input_dtypes") if getattr(proposal, key)]
    if stated and any(one.code == "E_NO_KERNEL_MATCHED" for one in verdict.errors):
        yield f"no launch of the family has this {' with these '.join(stated)}: leave both empty"


def _opening(dossier: Dossier, asking: Asking) -> list[Message]:
    prompts, known = asking.prompts, asking.labelled.ruleset
    source = None if asking.names_only else asking.source
    return [
        Message("system", system_text(prompts["system"], known.categories, asking.allowed)),
        Message("user", case_text(prompts["family"], dossier, source, known.category_ids)),
    ]
