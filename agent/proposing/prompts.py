"""Prompts as files: Markdown with front matter (name, version, inputs), filled by name.

No text of a prompt is in the code. An input that is declared but not used, used but not declared,
or not given, is an error. Foreign text goes in through `quoted` alone, so that no line of it can
be taken for a line of the prompt.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from agent.bundled import bundled_folder
from agent.core.text import shown
from agent.errors import UsageError

_FRONT = re.compile(r"\A---\n(.*?)\n---\n(.*)\Z", re.DOTALL)
_INPUT = re.compile(r"\{\{ *(\w+) *\}\}")
_KEYS = ("name", "version", "inputs")
QUOTE = "| "


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt; `digest` is sha256 (hex) of its file, so that a rule can name what was asked."""

    name: str
    version: int
    inputs: tuple[str, ...]
    text: str
    digest: str

    @property
    def reference(self) -> str:
        """Give `name@version`."""
        return f"{self.name}@{self.version}"

    def filled(self, **values: str) -> str:
        """Put the inputs in.

        Raises:
            UsageError: an input is missing or unknown.
        """
        if wrong := sorted(values.keys() ^ set(self.inputs)):
            raise _broken(self.name, f'input "{wrong[0]}" is missing or unknown')
        return _INPUT.sub(lambda found: values[found[1]], self.text)


def load_prompt(name: str) -> Prompt:
    """Load a shipped prompt.

    Raises:
        UsageError: no such prompt, or it is not well-formed.
    """
    path = bundled_folder("prompts") / f"{name}.md"
    try:
        content = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as err:
        raise _broken(name, "the file cannot be read") from err
    return read_prompt(content, name)


def load_prompts(names: Iterable[str]) -> tuple[dict[str, Prompt], str]:
    """Load shipped prompts by name, and give a digest (sha256, hex) of all their texts.

    Raises:
        UsageError: see `load_prompt`.
    """
    prompts = {name: load_prompt(name) for name in names}
    digests = "".join(prompts[name].digest for name in sorted(prompts))
    return prompts, hashlib.sha256(digests.encode()).hexdigest()


def read_prompt(content: str, name: str) -> Prompt:
    """Read a prompt from the text of its file.

    Raises:
        UsageError: no front matter, a key missing, or inputs that are not those of the text.
    """
    found = _FRONT.match(content)
    if found is None:
        raise _broken(name, "it has no front matter between lines of ---")
    fields = _fields(found[1], name)
    inputs = tuple(part.strip() for part in fields["inputs"].split(",") if part.strip())
    used = set(_INPUT.findall(found[2]))
    if wrong := sorted(used ^ set(inputs)):
        raise _broken(name, f'input "{wrong[0]}" is declared or used, but not both')
    if fields["name"] != name or not fields["version"].isdecimal():
        raise _broken(name, "name and version must be the file's name and a number")
    digest = hashlib.sha256(content.encode()).hexdigest()
    return Prompt(name, int(fields["version"]), inputs, found[2].strip() + "\n", digest)


def quoted(lines: Iterable[str], *, limit: int = 400, most: int = 60) -> str:
    """Give foreign lines as data: each marked, made visible, cut, and limited in number."""
    every = list(lines)
    kept = [f"{QUOTE}{shown(line, limit=limit)}" for line in every[:most]]
    if len(every) > most:
        kept.append(f"({len(every) - most} more lines were left out)")
    return "\n".join(kept) if kept else "(nothing)"


def _fields(front: str, name: str) -> Mapping[str, str]:
    fields: dict[str, str] = {}
    for line in front.split("\n"):
        key, colon, value = line.partition(":")
        if not colon or key in fields or key not in _KEYS:
            raise _broken(name, f'front matter "{line}" is not one of {", ".join(_KEYS)}')
        fields[key] = value.strip()
    if missing := [key for key in _KEYS if key not in fields]:
        raise _broken(name, f"front matter lacks {missing[0]}")
    return fields


def _broken(name: str, what: str) -> UsageError:
    return UsageError("PR004", what, location=f"prompts/{shown(name)}.md")
