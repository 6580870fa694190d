"""`label-agent demo`."""

from __future__ import annotations

import contextlib
import shlex
import sys
from pathlib import Path

import click

from agent.cli.options import FILE, flag
from agent.cli.screen import talk

STEPS: tuple[tuple[str, str], ...] = (
    (
        "What ran with the FP8 cache, under the built-in rules: three kernels have no label yet.",
        "label ../traces/fp8",
    ),
    (
        "Rules for what ran before the change, proposed offline and proven against ../tinyserve.",
        "propose ../traces/bf16 --repo ../tinyserve --accept validated",
    ),
    (
        "Rules for what only the new run has.",
        "propose ../traces/fp8 --baseline ../traces/bf16 --repo ../tinyserve --accept validated",
    ),
    ("Every rule's evidence, checked again.", "verify --repo ../tinyserve"),
    ("What the FP8 cache cost.", "diff ../traces/bf16 ../traces/fp8"),
)


@click.command()
@click.option(
    "--folder",
    metavar="DIR",
    type=FILE,
    default="label-agent-demo",
    help="Where to write; left for looking at.",
)
@flag("--force", "Replace an earlier demo in that folder.")
def demo(folder: Path, force: bool) -> int:
    """Run the whole job on bundled input: no key, no network.

    Example: label-agent demo --folder /tmp/demo
    """
    from agent.workflows.demo import prepare_demo

    laid = prepare_demo(folder, force=force)
    talk(f"made traces and a made serving checkout, in {folder}")
    worst = 0
    with contextlib.chdir(laid.rules):
        for what, command in STEPS:
            worst = max(worst, _step(what, command))
    sys.stdout.write(
        f"\nEverything is in {folder}: the rule file is {folder}/rules/label-rules.toml\n"
    )
    return worst


def _step(what: str, command: str) -> int:
    from agent.cli import main

    sys.stdout.write(f"\n# {what}\n$ label-agent {command}\n\n")
    sys.stdout.flush()
    return main(shlex.split(command))
