"""A model server on loopback that plays a script and keeps what it was sent."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from agent.proposing.providers.base import Message, Request
from agent.proposing.providers.retry import Patience

SCHEMA = {
    "type": "object",
    "properties": {
        "pattern": {"type": "string", "maxLength": 20, "pattern": "^a"},
        "lines": {"type": "array", "maxItems": 3, "items": {"type": "integer", "minimum": 1}},
    },
    "required": ["pattern", "lines"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class Answer:
    """One scripted answer; `drip` sends it a byte at a time, `cut` closes after some bytes."""

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    text: str | None = None
    cut: int | None = None
    hang: bool = False
    drip: bool = False

    def payload(self) -> bytes:
        return (json.dumps(self.body) if self.text is None else self.text).encode()


@dataclass
class ModelServer:
    """Plays `script` in order, or asks it for each body; beyond a list it answers with 599."""

    script: list[Answer] | Callable[[dict[str, Any]], Answer]
    sent: list[dict[str, Any]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def take(self, body: dict[str, Any]) -> Answer:
        if callable(self.script):
            return self.script(body)
        return self.script.pop(0) if self.script else Answer(599, {"error": "script is over"})


def _handler(server: ModelServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            length = int(self.headers.get("content-length", "0"))
            body = json.loads(self.rfile.read(length))
            server.sent.append(body)
            server.paths.append(self.path)
            server.headers.append({name.lower(): value for name, value in self.headers.items()})
            self.close_connection = True
            _play(self, server, server.take(body))

        def log_message(self, *_: Any) -> None:
            pass

    return Handler


def _play(handler: BaseHTTPRequestHandler, server: ModelServer, answer: Answer) -> None:
    if answer.hang:
        server.released.wait(30)
        return
    payload = answer.payload()
    handler.send_response(answer.status)
    headers = {
        "Content-Type": "application/json",
        "Content-Length": str(len(payload)),
        "Connection": "close",
    }
    for name, value in (headers | dict(answer.headers)).items():
        handler.send_header(name, value)
    handler.end_headers()
    if answer.drip:
        for at in range(len(payload)):
            if server.released.wait(0.05):
                return
            try:
                handler.wfile.write(payload[at : at + 1])
            except OSError:
                return
        return
    handler.wfile.write(payload[: answer.cut])


@contextmanager
def serving(
    script: Sequence[Answer] | Callable[[dict[str, Any]], Answer],
) -> Iterator[ModelServer]:
    """Serve a script on a free port of loopback."""
    server = ModelServer(script if callable(script) else list(script))
    http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(server))
    http.daemon_threads = True
    server.port = http.server_address[1]
    thread = threading.Thread(target=http.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.released.set()
        http.shutdown()
        http.server_close()
        thread.join()


def completion(text: str | None = '{"pattern": "a", "lines": [1]}', **changes: Any) -> Answer:
    """A chat completion as OpenAI's interface gives it."""
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text},
        "finish_reason": "stop",
    }
    body = {
        "id": "x",
        "object": "chat.completion",
        "created": 1,
        "model": "served-model",
        "system_fingerprint": "fp_1",
        "choices": [choice],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
    }
    return Answer(200, body | changes)


def message(text: str = '{"pattern": "a", "lines": [1]}', **changes: Any) -> Answer:
    """A message as Anthropic's interface gives it."""
    body = {
        "id": "x",
        "type": "message",
        "role": "assistant",
        "model": "served-model",
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 7, "output_tokens": 3, "cache_read_input_tokens": 2},
    }
    return Answer(200, body | changes)


def question(text: str = "Which rule?", **changes: Any) -> Request:
    """A request with a system and a user message."""
    messages = (Message("system", "You label kernels."), Message("user", text))
    given: dict[str, Any] = {
        "model": "m1",
        "messages": messages,
        "schema": SCHEMA,
        "max_tokens": 64,
    }
    return Request(**(given | changes))


@dataclass
class FakeTime:
    """Sleeps without sleeping, and keeps for how long."""

    slept: list[float] = field(default_factory=list)
    now: float = 1_000_000.0

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def patience(self) -> Patience:
        return Patience(sleep=self.sleep, monotonic=lambda: self.now, wall=lambda: self.now)
