"""Exact times: JSON number tokens in microseconds -> integer nanoseconds, never through a float.

At epoch microseconds a float64 steps by 0.25 us, so the decimals of a 17-digit `ts` are only safe
as text.
"""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal, DecimalException

from agent.traces.events import Token

INT64_MAX = (1 << 63) - 1
LARGEST_NS = (1 << 62) - 1
"""Times beyond 146 years are taken for damage; the sum of any two others fits in 64 bits."""

_MAX_TOKEN = 64
_LARGEST_US = Decimal(LARGEST_NS) / 1000


def to_ns(token: Token) -> int | None:
    """Give the nanoseconds of one token (a JSON number, or a string that holds one).

    Returns None for null, for text that is not a finite number, and for times beyond
    `LARGEST_NS`. A fraction of a nanosecond is rounded half to even.
    """
    text = bytes(token).strip(b'"').strip()
    if not text or len(text) > _MAX_TOKEN:
        return None
    try:
        microseconds = Decimal(text.decode("ascii"))
    except (DecimalException, UnicodeDecodeError):
        return None
    if not microseconds.is_finite() or microseconds.copy_abs() > _LARGEST_US:
        return None
    return int((microseconds * 1000).to_integral_value(rounding=ROUND_HALF_EVEN))
