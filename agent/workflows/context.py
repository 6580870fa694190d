"""What is known of a run beside its kernels: from the trace, or said by the user."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace

from agent.core.kernels import Trace
from agent.core.proposals import RunContext
from agent.errors import UsageError

_ARCH_OF = (
    ("MI355", "gfx950"),
    ("MI350", "gfx950"),
    ("MI325", "gfx942"),
    ("MI308", "gfx942"),
    ("MI300", "gfx942"),
    ("MI250", "gfx90a"),
    ("MI210", "gfx90a"),
    ("MI100", "gfx908"),
    ("B200", "sm_100"),
    ("GB200", "sm_100"),
    ("H200", "sm_90"),
    ("H100", "sm_90"),
    ("A100", "sm_80"),
)
"""Device names as profilers write them, and the architecture the vendor documents for each."""
_GFX = re.compile(r"(?:\b|_)(gfx\d{2,4}[a-f0-9]?)(?:\b|_)")
KEYS = tuple(field.name for field in fields(RunContext))


def context_of(trace: Trace | None, said: Sequence[str] = ()) -> RunContext:
    """Give the context of a run; each of `said` is `KEY=VALUE` and wins over the trace.

    Raises:
        UsageError: an unknown key, or no value.
    """
    context = RunContext() if trace is None else RunContext(_backend(trace), _arch(trace))
    return replace(context, **dict(map(_pair, said)))


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if key not in KEYS or not equals or not value:
        hint = f"give KEY=VALUE, KEY one of {', '.join(KEYS)}"
        raise UsageError("RV018", f'--context "{text}" says nothing that is known', hint=hint)
    return key, value


def _backend(trace: Trace) -> str:
    vendors = {rank.info.vendor for rank in trace.ranks} - {"unknown"}
    return vendors.pop() if len(vendors) == 1 else ""


def _arch(trace: Trace) -> str:
    """Take the architecture from the device's name, else from kernel names that all say one."""
    devices = " ".join(name for rank in trace.ranks for name in rank.info.device_names)
    by_device = {arch for name, arch in _ARCH_OF if name in devices}
    return _only(by_device) or _only(_named(signature.name for signature in trace.stats))


def _named(names: Iterable[str]) -> set[str]:
    return {found[1] for name in names if (found := _GFX.search(name))}


def _only(values: set[str]) -> str:
    return values.pop() if len(values) == 1 else ""
