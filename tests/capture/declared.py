"""What a Python source declares, read without running it: command line options, fields, names.

Options are those of every `add_argument` call with its literal `choices`, `action`, `nargs` and
plain `type`; what is no literal there is left open.
"""

from __future__ import annotations

import argparse
import ast
from collections.abc import Iterator
from pathlib import Path

PLAIN_TYPES = {"int": int, "float": float, "str": str}
FLAGS = {"store_true", "store_false", "BooleanOptionalAction"}


def parser_of(source: Path) -> argparse.ArgumentParser:
    """Rebuild the command line that a module declares; what it does not declare is an error."""
    parser = argparse.ArgumentParser(source.name, conflict_handler="resolve")
    for call in _calls(source, "add_argument"):
        options = [arg.value for arg in call.args if isinstance(arg, ast.Constant)]
        if options and all(str(option).startswith("-") for option in options):
            parser.add_argument(*map(str, options), **_settings(call))
    return parser


def fields_of(source: Path, name: str) -> set[str]:
    """Give the annotated fields of a class."""
    tree = ast.parse(source.read_text(encoding="utf-8"))
    (found,) = [
        node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == name
    ]
    return {
        line.target.id
        for line in found.body
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)
    }


def names_of(source: Path) -> set[str]:
    """Give every name that is assigned anywhere in a module, in classes too."""
    tree = ast.parse(source.read_text(encoding="utf-8"))
    targets = [
        one for node in ast.walk(tree) if isinstance(node, ast.Assign) for one in node.targets
    ]
    return {target.id for target in targets if isinstance(target, ast.Name)}


def _calls(source: Path, method: str) -> Iterator[ast.Call]:
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        function = node.func if isinstance(node, ast.Call) else None
        if isinstance(function, ast.Attribute) and function.attr == method:
            yield node


def _settings(call: ast.Call) -> dict[str, object]:
    """Keep what decides whether an argument is taken; defaults and help do not."""
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    action = _last_name(given.get("action"))
    if action in FLAGS:
        optional = action == "BooleanOptionalAction"
        return {"action": argparse.BooleanOptionalAction if optional else action}
    settings: dict[str, object] = {}
    if kind := PLAIN_TYPES.get(_last_name(given.get("type"))):
        settings["type"] = kind
    if isinstance(given.get("choices"), (ast.List, ast.Tuple)):
        settings["choices"] = _literal(given["choices"])
    if nargs := _last_name(given.get("nargs")):
        settings["nargs"] = nargs
    return {key: value for key, value in settings.items() if value is not None}


def _literal(node: ast.expr) -> list[object] | None:
    try:
        return list(ast.literal_eval(node))
    except ValueError:
        return None


def _last_name(node: ast.expr | None) -> str:
    """Give a constant, or the last part of a dotted name."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
