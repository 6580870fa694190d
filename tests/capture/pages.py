"""The commands that the pages show: what stands in fences for a shell, and in code spans."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```(?P<language>\w*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
GENERATED = re.compile(r"<!-- (?:run|python)\b.*?<!-- end -->", re.DOTALL)
PROGRAMS = "curl|docker|git|label-agent|make|nsys|pip|python3?|rocprofv3|vllm"
SPAN = re.compile(rf"`(?P<command>(?:[A-Z_]+=\S+ )*(?:{PROGRAMS}) [^`\n]+)`")


@dataclass(frozen=True)
class Command:
    """One command of a page, on one line."""

    page: str
    text: str


def shell_commands(page: Path) -> list[Command]:
    """Give the commands of a page's `sh` fences in order, without comments."""
    return [
        Command(page.name, line.partition("  #")[0].strip())
        for fence in FENCE.finditer(page.read_text(encoding="utf-8"))
        if fence["language"] == "sh"
        for line in fence["body"].replace("\\\n", " ").splitlines()
        if line.strip() and not line.startswith("#")
    ]


def other_fences(page: Path) -> list[tuple[str, str]]:
    """Give language and text of the fences that the page's generator does not fill."""
    text = GENERATED.sub("", page.read_text(encoding="utf-8"))
    return [(fence["language"], fence["body"].strip()) for fence in FENCE.finditer(text)]


def text_commands(page: Path) -> list[Command]:
    """Give the commands that stand in fences of another language and are not generated."""
    return [
        Command(page.name, line.strip())
        for _, body in other_fences(page)
        for line in body.replace("\\\n", " ").split("\n")
        if re.match(rf"(?:\$ )?(?:{PROGRAMS}) ", line)
    ]


def spans(page: Path) -> list[Command]:
    """Give the commands that a page names in running text or a table."""
    text = GENERATED.sub("", FENCE.sub("", page.read_text(encoding="utf-8")))
    return [Command(page.name, found["command"]) for found in SPAN.finditer(text)]
