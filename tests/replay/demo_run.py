"""The demo's propose run with a model, as it is recorded and replayed."""

from __future__ import annotations

import contextlib
from pathlib import Path

from agent.cli import main
from agent.workflows.demo import prepare_demo
from tests.replay.cassettes import BASE_URL, MODEL

CASSETTE = "recorded/propose-demo.yaml"
PROPOSE = (
    "propose",
    "../traces/fp8",
    "--baseline",
    "../traces/bf16",
    "--repo",
    "../tinyserve",
    "--model",
    f"openai:{MODEL}",
    "--base-url",
    BASE_URL,
    "--accept",
    "validated",
    "--json",
)


def propose_on_demo(folder: Path) -> Path:
    """Run `propose` with the model on a fresh demo in `folder`; give the folder of its rules."""
    laid = prepare_demo(folder)
    with contextlib.chdir(laid.rules):
        main([*PROPOSE])
    return laid.rules
