"""What the rules leave open, grouped into families and ranked by GPU time.

A family is what one rule can settle: kernels that share a stem, and for dtype casts that hide in a
catch-all also the launching op and its dtypes. Pure and deterministic.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from agent.core.kernels import Signature, SignatureStats
from agent.core.rules import CATCH_ALL, UNLABELLED, CategoryId, Label, LabelledTrace, RuleId
from agent.proposing.stems import copy_name, is_vendor, stem_of

MIN_SHARE = 0.001
MAX_FAMILIES = 20
_FP8 = "c10::Float8_"


@dataclass(frozen=True, slots=True)
class Member:
    """One signature of a family, with its sums and how it is labelled now."""

    signature: Signature
    stats: SignatureStats
    label: Label


@dataclass(frozen=True, slots=True)
class Family:
    """Signatures that one rule can settle; members with most time come first.

    Attributes:
        stem: how the family is called in progress and reports; not a pattern.
        total_ns: kernel time of the whole trace, for shares.
        in_baseline: whether the baseline ran a kernel of this stem; None without a baseline.
        vendor: the kernels are of a library whose source no checkout holds.
    """

    stem: str
    members: tuple[Member, ...]
    total_ns: int
    in_baseline: bool | None = None
    vendor: bool = False

    @property
    def count(self) -> int:
        """Number of GPU events."""
        return sum(member.stats.count for member in self.members)

    @property
    def time_ns(self) -> int:
        """Kernel time of the family."""
        return sum(member.stats.time_ns for member in self.members)

    @property
    def share(self) -> float:
        """Part of the trace's kernel time, 0 to 1."""
        return self.time_ns / self.total_ns if self.total_ns else 0.0

    @property
    def names(self) -> tuple[str, ...]:
        """Distinct raw names, most time first."""
        return tuple(dict.fromkeys(member.signature.name for member in self.members))

    @property
    def rules_now(self) -> tuple[RuleId, ...]:
        """Catch-all rules that label members now: a rule for the family must override them."""
        return tuple(sorted({m.label.rule_id for m in self.members if m.label.rule_id}))

    @property
    def why_open(self) -> str:
        """Say why kernels that have a label are asked about, or nothing where they have none."""
        held = sorted({m.label.category for m in self.members} - {UNLABELLED})
        return f"labelled {', '.join(held)} by a catch-all" if held else ""

    @property
    def op(self) -> str:
        """The launching op that all members share, or ""."""
        ops = {member.signature.op for member in self.members}
        return ops.pop() if len(ops) == 1 else ""

    @property
    def input_dtypes(self) -> tuple[str, ...]:
        """The op's first two dtypes where all members share them, or nothing."""
        pairs = {member.signature.input_dtypes[:2] for member in self.members}
        return pairs.pop() if len(pairs) == 1 else ()


def rank_families(
    labelled: LabelledTrace,
    baseline: Iterable[Signature] | None = None,
    *,
    min_share: float = MIN_SHARE,
    max_families: int = MAX_FAMILIES,
) -> tuple[Family, ...]:
    """List the open families, those absent from the baseline first, then by GPU time.

    Families of vendor libraries are listed after the cut: they cost no question, so they do not
    take a place.
    """
    seen = None if baseline is None else _Seen(baseline)
    total = labelled.trace.kernel_ns
    groups: dict[tuple[str, ...], list[Member]] = {}
    for signature, stats in labelled.stats.items():
        label = labelled.labels[signature]
        if is_open(signature, label, seen):
            groups.setdefault(_key(signature, label), []).append(Member(signature, stats, label))
    families = [_family(key[0], members, total, seen) for key, members in groups.items()]
    large = [family for family in families if family.time_ns and family.share >= min_share]
    large.sort(key=_rank)
    own = [family for family in large if not family.vendor][:max_families]
    return (*own, *(family for family in large if family.vendor))


def is_open(signature: Signature, label: Label, seen: _Seen | None = None) -> bool:
    """Tell whether a rule is still wanted: no label, or a catch-all's that may hide a cast."""
    if label.category == UNLABELLED:
        return True
    if label.category not in CATCH_ALL or label.grade == "validated":
        return False
    if label.category == CategoryId("Misc"):
        return not is_vendor(signature.name)
    return may_cast_fp8(signature, new=seen is not None and not seen.name(signature.name))


def may_cast_fp8(signature: Signature, *, new: bool) -> bool:
    """Tell whether a copy kernel may convert from or to FP8.

    Known dtypes decide; else the name where it says FP8; else only a converting kernel with a
    launching op that is absent from the baseline (`new`).
    """
    copy = copy_name(signature.name)
    if copy is None:
        return False
    pair = signature.input_dtypes[:2]
    if len(pair) == 2 and all(pair):
        return pair[0].startswith(_FP8) != pair[1].startswith(_FP8)
    return copy.writes_fp8 or (copy.converts and new and not signature.replayed)


class _Seen:
    """Names and stems that the baseline ran."""

    def __init__(self, signatures: Iterable[Signature]) -> None:
        self._names = frozenset(signature.name for signature in signatures)
        self._stems = frozenset(map(stem_of, self._names))

    def name(self, name: str) -> bool:
        return name in self._names

    def stem(self, stem: str) -> bool:
        return stem in self._stems


def _key(signature: Signature, label: Label) -> tuple[str, ...]:
    stem = stem_of(signature.name)
    if label.category == UNLABELLED:
        return (stem,)
    return (stem, str(label.category), signature.op, *signature.input_dtypes[:2])


def _family(stem: str, members: list[Member], total_ns: int, seen: _Seen | None) -> Family:
    ordered = sorted(members, key=lambda member: (-member.stats.time_ns, member.signature))
    vendor = all(is_vendor(member.signature.name) for member in members)
    known = None if seen is None else seen.stem(stem)
    return Family(stem, tuple(ordered), total_ns, known, vendor)


def _rank(family: Family) -> tuple[bool, int, str, tuple[str, ...]]:
    return (family.in_baseline is not False, -family.time_ns, family.stem, family.names)
