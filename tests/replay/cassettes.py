"""Model exchanges as cassettes: the one question asked, and what is kept of an exchange."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import vcr
from vcr.request import Request as SentRequest

from agent.proposing.providers.anthropic import AnthropicProvider
from agent.proposing.providers.base import Message, Request
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
