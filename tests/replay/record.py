"""Record `cassettes/recorded/` again from a live server, and say in the manifest where from.

    python -m tests.replay.record --model-file MODEL.gguf --server "NAME and build" \\
        --command "how it was started" [--trace TRACE --sglang-wheel DIR] [--only PART]

The server listens on 127.0.0.1:18101. Without the last two the run on SGLang stays as it is.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import hashlib
import io
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import tomlkit

from tests.replay.cassettes import FOLDER, MANIFEST, MODEL, QUESTION, RECORDED, provider, recorder
from tests.replay.runs import (
    ANTHROPIC_DEMO,
    OPENAI_DEMO,
    SGLANG,
    Sglang,
    propose_on_demo,
    propose_on_sglang,
)


def main(argv: list[str]) -> int:
    given = _arguments(argv)
    with given.model_file.open("rb") as weights:
        digest = hashlib.file_digest(weights, "sha256").hexdigest()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for file, run in _runs(Path(folder), given):
            if given.only not in file:
                continue
            _record(file, run)
            rows.append(
                {
                    "file": file,
                    "origin": "recorded",
                    "model": MODEL,
                    "model_sha256": digest,
                    "server": given.server,
                    "date": dt.datetime.now(tz=dt.UTC).date().isoformat(),
                    "command": re.sub(r"\S*/", "", given.command),
                }
            )
            _write_manifest(rows)
    return 0


def _arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model-file", type=Path, required=True, help="the weights served")
    parser.add_argument("--server", required=True, help="server and build, as it names itself")
    parser.add_argument("--command", required=True, help="how the server was started")
    parser.add_argument("--trace", type=Path, help="a trace of SGLang")
    parser.add_argument("--sglang-wheel", type=Path, help="the wheel, unpacked in a git checkout")
    parser.add_argument("--only", default="", help="record files with this in their name")
    return parser.parse_args(argv)


def _runs(folder: Path, given: argparse.Namespace) -> Iterator[tuple[str, Callable[[], object]]]:
    for backend, file in RECORDED.items():
        yield file, lambda of=backend: provider(of).complete(QUESTION, deadline_s=300)
    for backend, file in (("openai", OPENAI_DEMO), ("anthropic", ANTHROPIC_DEMO)):
        yield file, lambda of=backend: propose_on_demo(folder / of, f"{of}:{MODEL}")
    if given.trace and given.sglang_wheel:
        sglang = Sglang(given.trace, given.sglang_wheel)
        yield SGLANG, lambda: propose_on_sglang(folder / "sglang", sglang)


def _record(file: str, run: Callable[[], object]) -> None:
    (FOLDER / file).unlink(missing_ok=True)
    sys.stderr.write(f"{file}\n")
    with contextlib.redirect_stdout(io.StringIO()), recorder("once").use_cassette(file):
        run()


def _write_manifest(rows: list[dict[str, str]]) -> None:
    manifest = tomlkit.parse(MANIFEST.read_text(encoding="utf-8"))
    new = {row["file"] for row in rows}
    kept = [dict(row) for row in manifest.get("cassette", []) if row["file"] not in new]
    tables = tomlkit.aot()
    for row in sorted([*kept, *rows], key=lambda row: row["file"]):
        tables.append(tomlkit.item(row))
    manifest["cassette"] = tables
    MANIFEST.write_text(tomlkit.dumps(manifest), encoding="utf-8")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
