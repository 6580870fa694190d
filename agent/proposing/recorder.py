"""Replies as the journal keeps them, by a digest of what was asked: nothing is asked twice."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from agent.errors import JournalError
from agent.proposing.providers.base import Provider, Reply, Request, Usage

TURN = "turn"
Append = Callable[[str, Mapping[str, Any]], object]


class Line(Protocol):
    """The part of a journal's record that is read here."""

    @property
    def kind(self) -> str:
        """Tell what the record is."""
        ...

    @property
    def seq(self) -> int:
        """Give its number."""
        ...

    @property
    def data(self) -> Mapping[str, Any]:
        """Give its content."""
        ...


@dataclass
class Recorder:
    """Finds replies that were given before, and keeps new ones before anything else happens."""

    append: Append = lambda _kind, _data: None
    run: str = ""
    known: dict[str, Reply] = field(default_factory=dict)

    def find(self, digest: str) -> Reply | None:
        """Give the reply to an equal request, from whichever run."""
        return self.known.get(digest)

    def keep(self, digest: str, family: str, turn: int, reply: Reply) -> None:
        """Write a reply into the journal."""
        self.append(
            TURN,
            {
                "run": self.run,
                "family": family,
                "turn": turn,
                "request": digest,
                "reply": asdict(reply),
            },
        )
        self.known[digest] = reply


def replies_in(records: Iterable[Line]) -> dict[str, Reply]:
    """Read the replies of a journal by the digest of their requests; later ones win.

    Raises:
        JournalError: a record of a turn that cannot be read.
    """
    known: dict[str, Reply] = {}
    for record in records:
        if record.kind != TURN:
            continue
        try:
            reply = record.data["reply"]
            usage = Usage(**reply["usage"])
            known[str(record.data["request"])] = Reply(**{**reply, "usage": usage})
        except (KeyError, TypeError) as err:
            what = f"record {record.seq} holds no reply that can be read"
            raise JournalError("PR005", what, hint="move the journal away") from err
    return known


def request_digest(provider: Provider, request: Request) -> str:
    """Give sha256 (hex) of who is asked and what; the host of a server is not part of it."""
    text = json.dumps([provider.name, asdict(request)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
