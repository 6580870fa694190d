"""Try again, wait as told, and keep to one total deadline even when a server hangs.

The libraries' own retries are switched off: theirs know no total deadline and sleep as long as a
server asks. Deterministic: the jitter is a digest of the question, not chance.
"""

from __future__ import annotations

import hashlib
import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TypeVar

from agent.proposing.providers.faults import Fault

_T = TypeVar("_T")

_GRACE_S = 1.0  # a read timeout comes after the deadline, so that the deadline is what is said


@dataclass(frozen=True, slots=True)
class Patience:
    """How often and how long to wait; seconds.

    Attributes:
        attempts: tries in all, the first included.
        longest_backoff_s: cap of the own, doubling wait.
        longest_wait_s: a server that asks for more than this is given up at once.
    """

    attempts: int = 4
    first_backoff_s: float = 1.0
    longest_backoff_s: float = 30.0
    longest_wait_s: float = 120.0
    sleep: Callable[[float], None] = time.sleep
    monotonic: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time

    def backoff_s(self, tried: int, seed: bytes) -> float:
        """Give the wait after `tried` tries: doubled each time, capped, 50 to 100 % of it."""
        full = min(self.longest_backoff_s, self.first_backoff_s * 2.0 ** (tried - 1))
        digest = hashlib.sha256(seed + tried.to_bytes(4, "big")).digest()
        return full * (0.5 + 0.5 * int.from_bytes(digest[:4], "big") / 0xFFFFFFFF)


def ask(
    send: Callable[[float], _T],
    *,
    deadline_s: float,
    seed: bytes = b"",
    patience: Patience | None = None,
    host: str = "the server",
) -> _T:
    """Call `send(seconds_left)` until it answers, fails for good, or the time is up.

    Raises:
        Fault: the last one met; its message says when waiting longer would be pointless.
    """
    how = patience or Patience()
    ends = how.monotonic() + deadline_s
    for tried in range(1, how.attempts + 1):
        left = ends - how.monotonic()
        if left <= 0:
            break
        try:
            return within(send, left, _late(host, deadline_s))
        except Fault as fault:
            if not fault.transient:
                raise
            if tried == how.attempts:
                raise _given_up(fault, f"(tried {tried} times)") from None
            how.sleep(_wait_s(fault, tried, ends, how, seed))
    raise _late(host, deadline_s)


def within(send: Callable[[float], _T], seconds: float, late: Fault) -> _T:
    """Call `send` on a thread that is left behind when `seconds` are over.

    A read timeout alone does not do: a server that sends one byte a second never meets it.
    """
    answer: Future[_T] = Future()

    def run() -> None:
        try:
            answer.set_result(send(seconds + _GRACE_S))
        except BaseException as err:  # noqa: BLE001 -- handed over to the waiting thread
            answer.set_exception(err)

    threading.Thread(target=run, name="model-request", daemon=True).start()
    try:
        return answer.result(timeout=seconds)
    except TimeoutError:
        raise late from None


def retry_after_s(value: str, now: float) -> float | None:
    """Read a Retry-After header, seconds or a date (RFC 9110, 10.2.3); None if it is neither."""
    text = value.strip()
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(text).timestamp() - now
        except (ValueError, OverflowError, TypeError):
            return None
    if math.isnan(seconds):
        return None
    return max(0.0, seconds)


def _wait_s(fault: Fault, tried: int, ends: float, how: Patience, seed: bytes) -> float:
    backoff = how.backoff_s(tried, seed)
    told = retry_after_s(fault.retry_after, how.wall()) if fault.retry_after else None
    if told is not None and told > how.longest_wait_s:
        raise _too_long(fault, told, f"at most {how.longest_wait_s:g} s are waited")
    left = ends - how.monotonic()
    wait = backoff if told is None else max(told, min(backoff, how.first_backoff_s))
    if wait < left:
        return wait
    if told is not None:
        raise _too_long(fault, told, f"only {max(left, 0):.0f} s are left")
    raise _given_up(fault, f"(tried {tried} times, no time left to try again)")


def _too_long(fault: Fault, seconds: float, why: str) -> Fault:
    long = f"{seconds:.0f} s" if math.isfinite(seconds) else "forever"
    spelled = f" ({seconds / 3600:.1f} h)" if 3600 <= seconds < math.inf else ""
    return Fault(
        "ML015",
        f"{fault.message}; it asks to wait {long}{spelled}, {why}",
        hint="try again after that time; what was settled so far is kept",
    )


def _given_up(fault: Fault, note: str) -> Fault:
    return Fault(
        fault.code,
        f"{fault.message} {note}",
        hint=fault.hint,
    )


def _late(host: str, deadline_s: float) -> Fault:
    return Fault(
        "ML017",
        f"no complete answer from {host} within {round(deadline_s, 1):g} s",
        hint="raise --deadline, or use a faster --model",
    )
