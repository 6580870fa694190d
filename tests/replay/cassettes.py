"""Record and replay model exchanges: the one question asked, and how cassettes are written.

`python -m tests.replay.cassettes --help` records `cassettes/recorded/` again from a live server.
"""

from __future__ import annotations

import argparse
import datetime as dt
import hashlib
import re
import sys
from pathlib import Path
from typing import Any

import tomlkit
import vcr
from vcr.request import Request as SentRequest

from agent.proposing.providers.anthropic import AnthropicProvider
from agent.proposing.providers.base import Message, Reply, Request
from agent.proposing.providers.choose import choose_provider
from agent.proposing.providers.openai import OpenAIProvider

FOLDER = Path(__file__).resolve().parents[2] / "cassettes"
MANIFEST = FOLDER / "MANIFEST.toml"
BASE_URL = "http://127.0.0.1:18101/v1"
MODEL = "qwen2.5-coder-1.5b-instruct-q4_k_m"
RECORDED = {"openai": "recorded/openai-label.yaml", "anthropic": "recorded/anthropic-label.yaml"}
HEADERS = frozenset({"accept", "content-type", "retry-after"})  # both ways; all others are dropped

SCHEMA = {
    "type": "object",
    "properties": {
        "category": {"type": "string", "enum": ["gemm", "attention", "norm"]},
        "why": {"type": "string", "maxLength": 60},
    },
    "required": ["category", "why"],
    "additionalProperties": False,
}
QUESTION = Request(
    model=MODEL,
    messages=(
        Message(
            "system",
            "You label GPU kernels with one category: gemm, attention or norm. "
            'Answer with one JSON object: {"category": "...", "why": "..."}.',
        ),
        Message("user", "Kernel: fused_add_rmsnorm_kernel"),
    ),
    schema=SCHEMA,
    max_tokens=128,
)


def provider(backend: str, base_url: str = BASE_URL) -> OpenAIProvider | AnthropicProvider:
    """Give a provider for the server of the cassettes, without a key."""
    chosen = choose_provider(f"{backend}:{MODEL}", base_url, {}, lambda _: None)
    assert isinstance(chosen, OpenAIProvider | AnthropicProvider)
    return chosen


def recorder(mode: str) -> vcr.VCR:
    """Give vcrpy as all cassettes use it: match what is sent, keep allow-listed headers only."""
    return vcr.VCR(
        cassette_library_dir=str(FOLDER),
        record_mode=mode,
        match_on=("method", "uri", "body"),
        before_record_request=_plain_request,
        before_record_response=_plain_response,
        decode_compressed_response=True,
    )


def _plain_request(request: SentRequest) -> SentRequest:
    for name in list(request.headers):
        if name.lower() not in HEADERS:
            del request.headers[name]
    return request


def _plain_response(response: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in response["headers"].items() if name.lower() in HEADERS}
    return {**response, "headers": kept}


def _record(backend: str, base_url: str) -> Reply:
    path = FOLDER / RECORDED[backend]
    path.unlink(missing_ok=True)
    with recorder("once").use_cassette(RECORDED[backend]):
        return provider(backend, base_url).complete(QUESTION, deadline_s=300)


def _write_manifest(rows: list[dict[str, str]]) -> None:
    text = MANIFEST.read_text(encoding="utf-8") if MANIFEST.is_file() else ""
    manifest = tomlkit.parse(text)
    new = {row["file"] for row in rows}
    kept = [dict(row) for row in manifest.get("cassette", []) if row["file"] not in new]
    tables = tomlkit.aot()
    for row in sorted([*kept, *rows], key=lambda row: row["file"]):
        tables.append(tomlkit.item(row))
    manifest["cassette"] = tables
    MANIFEST.write_text(tomlkit.dumps(manifest), encoding="utf-8")


def main(argv: list[str]) -> int:
    """Record both interfaces from one server, and say in the manifest where they come from."""
    parser = argparse.ArgumentParser(prog="python -m tests.replay.cassettes")
    parser.add_argument("--model-file", type=Path, required=True, help="the weights served")
    parser.add_argument("--server", required=True, help="server and build, as it names itself")
    parser.add_argument("--command", required=True, help="how the server was started")
    given = parser.parse_args(argv)
    with given.model_file.open("rb") as weights:
        digest = hashlib.file_digest(weights, "sha256").hexdigest()
    rows = []
    for backend, file in RECORDED.items():
        reply = _record(backend, BASE_URL)
        rows.append(
            {
                "file": file,
                "origin": "recorded",
                "model": reply.model,
                "model_sha256": digest,
                "server": given.server,
                "date": dt.datetime.now(tz=dt.UTC).date().isoformat(),
                "command": re.sub(r"\S*/", "", given.command),
            }
        )
        sys.stderr.write(f"{file}: {reply.text}\n")
    _write_manifest(rows)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
