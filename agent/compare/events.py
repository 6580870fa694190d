"""Whether a comparison of whole ranks looks at single events, or their sums are enough."""

from __future__ import annotations

from agent.core.kernels import RankTrace


def needs_events(rank: RankTrace) -> bool:
    """Tell whether events are looked at: in uneven replays, and in steps that are not summed up.

    Parts of a rank, its stages and streams, are always made of events.
    """
    return rank.replays.uneven or (bool(rank.steps) and rank.step_times is None)
