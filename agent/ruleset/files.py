"""Where rule files lie, and their text; what it means is `agent.ruleset.codec`."""

from __future__ import annotations

from pathlib import Path

from agent.bundled import bundled_folder
from agent.core.proposals import Finding
from agent.ruleset.failure import rule_file_error

RULE_FILE = "label-rules.toml"
BUILTIN_FILE = "builtin.toml"
MAX_BYTES = 16 << 20


def read_rule_text(path: str | Path, *, what: str = "rule file") -> str:
    """Read the text of a rule file, or of another file that goes with one, as it is.

    Raises:
        RuleFileError: missing, not a file, too large, or not UTF-8 (with the line).
    """
    try:
        content = _read_bytes(Path(path))
    except (OSError, ValueError) as err:
        why = getattr(err, "strerror", None) or str(err)
        message, hint = f"cannot read the {what}: {why}", "check the path"
        finding = Finding("RS001", message, location=str(path), hint=hint)
        raise rule_file_error([finding]) from err
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as err:
        line = content.count(b"\n", 0, err.start) + 1
        message = f"not UTF-8: byte 0x{content[err.start]:02x}"
        where, hint = f"{path}:{line}", "save it as UTF-8"
        raise rule_file_error([Finding("RS001", message, location=where, hint=hint)]) from err


def find_rule_file(start: Path) -> Path | None:
    """Look for `label-rules.toml` in a folder and upwards."""
    for folder in (start, *start.parents):
        if (candidate := folder / RULE_FILE).is_file():
            return candidate
    return None


def is_shipped(path: str | Path) -> bool:
    """Tell whether a rule file is one of the package: by its folder, not by its name."""
    return Path(path).resolve().parent == bundled_folder("rules").resolve()


def _read_bytes(path: Path) -> bytes:
    if path.is_dir():
        message = "it is a folder"
        raise IsADirectoryError(0, message)
    with path.open("rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        message = f"larger than {MAX_BYTES >> 20} MiB"
        raise ValueError(message)
    return content
