"""A rule set as bytes and back, for keeping what was parsed and checked; pure.

One gzip member, which carries a checksum, of plain JSON. Nothing in it is ever executed.
"""

from __future__ import annotations

import msgspec
from isal import igzip_lib

from agent.core.rules import RuleSet

_LEVEL = 1
_MOST_BYTES = 1 << 28


def write_rules(ruleset: RuleSet) -> bytes:
    """Give the bytes of a rule set."""
    return igzip_lib.compress(msgspec.json.encode(ruleset), _LEVEL, igzip_lib.COMP_GZIP)


def read_rules(stored: bytes) -> RuleSet | None:
    """Give the rule set that `write_rules` was given; None for any other bytes."""
    member = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)
    try:
        text = member.decompress(stored, _MOST_BYTES)
        return msgspec.json.decode(text, type=RuleSet) if member.eof else None
    except (igzip_lib.IsalError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):  # type: ignore[misc] # its stub lacks the base class
        return None
