"""A model that answers from a list, and a checkout in memory."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from agent.core.proposals import Proposal, RunContext, Verdict
from agent.core.rules import LabelledTrace
from agent.core.source import Candidate, RepoInfo, SourceHit
from agent.errors import SourceError
from agent.proposing.budget import Budget, Limits
from agent.proposing.dossier import Dossier, dossier_of
from agent.proposing.families import rank_families
from agent.proposing.loop import PROMPTS, Asking
from agent.proposing.prompts import load_prompts
from agent.proposing.providers.base import Reply, Request, Usage
from agent.proposing.recorder import Recorder
from agent.ruleset.match import label_trace
from agent.workflows.demo import prepare_demo
from tests.builders import evidence, ruleset, signature, stats, trace

SCALE = "_scale_rows_inplace"


@dataclass
class ScriptedModel:
    """Answers in order; an exception in the list is raised. `asked` holds what was sent."""

    replies: list[object]
    asked: list[Request] = field(default_factory=list)
    name: str = "openai"
    model: str = "scripted"
    host: str = "127.0.0.1"

    def request_body(self, request: Request) -> dict[str, object]:
        return {"model": request.model}

    def complete(self, request: Request, *, deadline_s: float) -> Reply:
        self.asked.append(request)
        answer = self.replies.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        if isinstance(answer, Reply):
            return answer
        text = answer if isinstance(answer, str) else json.dumps({"note": "", "action": answer})
        return Reply(text, Usage(100, 10), model="scripted-1", fingerprint="fp")


class MemorySource:
    """A checkout of two files; everything it can be asked is recorded."""

    def __init__(self, *lines: str, hits: tuple[SourceHit, ...] = ()) -> None:
        self.lines = lines or ("@triton.jit", f"def {SCALE}(x):", "    pass")
        self.hits = hits
        self.questions: list[str] = []

    def repos(self) -> tuple[RepoInfo, ...]:
        return (RepoInfo("serve", "1" * 40),)

    def search(self, text: str, *, repo: str = "", limit: int = 20) -> tuple[object, ...]:
        self.questions.append(f"search {text}")
        return self.hits[:limit]

    def find_definition(self, name: str, *, repo: str = "", limit: int = 20) -> tuple[object, ...]:
        self.questions.append(f"define {name}")
        return ()

    def find_call_sites(self, symbol: str, **_: object) -> tuple[object, ...]:
        self.questions.append(f"call {symbol}")
        return ()

    def read(self, repo: str, path: str, first: int, last: int) -> tuple[str, ...]:
        self.questions.append(f"read {path}")
        if repo != "serve" or path.startswith(("/", "..")):
            raise SourceError("SC001", f"no file {path}")
        return self.lines[first - 1 : last]

    def shortlist(self, *_: object, **__: object) -> tuple[Candidate, ...]:
        return (candidate(),)


def candidate(**fields: object) -> Candidate:
    place = {"repo": "serve", "commit": "1" * 40}
    pair = (
        evidence(**place, path="layers/rms_norm.py", lines=(2, 2)),
        evidence(
            **place,
            kind="emission",
            path="layers/rms_norm.py",
            lines=(9, 9),
            symbol="RmsNorm.forward",
        ),
    )
    made = Candidate("triton", SCALE, pair, 100, "defined and launched in RmsNorm.forward")
    return replace(made, **fields)


def labelled(*names: str) -> LabelledTrace:
    return label_trace(trace({signature(name): stats() for name in names or (SCALE,)}), ruleset())


def dossiers(source: MemorySource, *names: str) -> list[Dossier]:
    run = labelled(*names)
    found = lambda *_: source.shortlist()  # noqa: E731
    return [dossier_of(one, run.trace, found, RunContext()) for one in rank_families(run)]


def admit(proposal: Proposal) -> Verdict:
    return Verdict(proposal, admitted=True, level="L3")


def asking(provider: ScriptedModel, source: MemorySource, **fields: object) -> Asking:
    prompts, digest = load_prompts(PROMPTS)
    limits = fields.pop("limits", Limits(turns=6))
    clock = fields.pop("clock", lambda: 0.0)
    values: dict[str, object] = {
        "provider": provider,
        "prompts": prompts,
        "prompts_digest": digest,
        "source": source,
        "labelled": labelled(),
        "judge": admit,
        "budget": Budget(limits, clock),
        "recorder": Recorder(),
    }
    return Asking(**{**values, **fields})


def submit(**fields: object) -> dict[str, object]:
    base: dict[str, object] = {"do": "submit_proposal", "category": "RMSNorm", "candidates": [1]}
    return {**base, **fields}


def demo_dossiers(folder: Path) -> tuple[Sequence[Dossier], dict[str, object]]:
    """Give the demo's families, and everything that its gate needs."""
    from agent.ruleset.codec import load_builtin
    from agent.source.index import open_sources
    from agent.traces.reader import read_trace
    from agent.workflows.context import context_of

    root = prepare_demo(folder).root
    source = open_sources([("tinyserve", root / "tinyserve")], commits={})
    new, base = (read_trace([str(root / "traces" / run)], context=True) for run in ("fp8", "bf16"))
    rules, context = load_builtin(), context_of(new)

    def shortlist(
        name: str, op: str, dtypes: tuple[str, ...], of: RunContext
    ) -> Sequence[Candidate]:
        return source.shortlist(name, op=op, input_dtypes=dtypes, context=of)

    families = rank_families(label_trace(new, rules), base.stats)
    found = [dossier_of(one, new, shortlist, context) for one in families]
    gate = {
        "ruleset": rules,
        "names": {},
        "source": source,
        "context": context,
        "trace": new,
        "baseline": base,
    }
    return found, gate
