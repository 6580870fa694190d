"""Conditions that make a comparison fail in CI: `--fail-on EXPRESSION`, repeatable.

    EXPRESSION = "incomplete" | "incomparable" | "new-category" [BOUND] | MEASURE BOUND
    MEASURE    = ("total" | CATEGORY) ["/pass" | "/raw"] | "unlabelled" | "inferred"
    BOUND      = (">" | ">=") NUMBER ("%" | "ms" | "us" | "s")

`total` and a category measure the increase of kernel time, per pass unless `/raw` is said (the two
are one where both sides did equal work): in per cent of the base's total, of the base's time in
that category, or as a time at the base's amount of work. `unlabelled` and `inferred` measure the
larger of both sides' kernel time so labelled, in per cent of all. `new-category` bounds the time of
a category that only the new side has, in per cent of the new total. A negative number asks for a
saving: `total>-2%` fails unless the total fell by at least 2 %. A gate on an increase fails, too,
where the sides cannot be compared, the capture is incomplete or durations are corrupt: what cannot
be judged has not passed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from agent.compare.bounds import CORRUPT, INCOMPARABLE, INCOMPLETE
from agent.compare.figures import Millis, fraction_of, percent
from agent.compare.rows import CategoryRow, by_category
from agent.compare.table import TraceDiff
from agent.core.rules import UNLABELLED, CategoryId, RuleSet
from agent.core.text import shown
from agent.errors import UsageError

Kind = Literal["incomplete", "incomparable", "new-category", "total", "category", "grade"]
Basis = Literal["pass", "raw"]
Unit = Literal["%", "ms", "us", "s"]

_FLAGS = ("incomplete", "incomparable")
_GRADES = ("unlabelled", "inferred")
_KEYWORDS = (*_FLAGS, "new-category", "total", *_GRADES)
_WORD = re.compile(r"[^\s/<>=]*")
_BASIS = re.compile(r"\s*(?:/\s*(?P<basis>\w*)\s*)?")
_OPERATOR = re.compile(r"\s*(?P<operator>>=|>)\s*")
_NUMBER = re.compile(r"\s*(?P<number>[+-]?(?:[0-9]{1,15}(?:\.[0-9]{1,9})?|\.[0-9]{1,9}))\s*")
_UNIT = re.compile(r"\s*(?P<unit>%|ms|us|s)\s*")
_KINDS: dict[str, Kind] = {
    "incomplete": "incomplete",
    "incomparable": "incomparable",
    "new-category": "new-category",
    "total": "total",
    "unlabelled": "grade",
    "inferred": "grade",
}
_NS: dict[str, int] = {"ms": 10**6, "us": 10**3, "s": 10**9}


@dataclass(frozen=True, slots=True)
class Gate:
    """One parsed condition; `bound` is a fraction of 1 for `%`, else nanoseconds."""

    expression: str
    kind: Kind
    subject: str = ""
    basis: Basis = "pass"
    inclusive: bool = False
    bound: Fraction | None = None
    unit: Unit = "%"


@dataclass(frozen=True, slots=True)
class GateResult:
    """Whether a condition made the comparison fail, and what was measured."""

    expression: str
    failed: bool
    message: str


def parse_gate(expression: str, ruleset: RuleSet, *, rows: Iterable[str] = ()) -> Gate:
    """Parse one condition; `rows` are names of table rows beside the declared categories.

    Raises:
        UsageError: DF003; its hint repeats the expression with a caret under the fault.
    """
    start = len(expression) - len(expression.lstrip())
    subject = _subject(expression, start, {*_categories(ruleset), *rows})
    kind = _KINDS.get(subject, "category")
    at, basis = _basis(expression, start + len(subject), kind)
    if kind in _FLAGS or (kind == "new-category" and at == len(expression)):
        if at < len(expression):
            raise _wrong(expression, at, f"{subject} takes no bound")
        return Gate(expression, kind, subject)
    return _bounded(expression, at, Gate(expression, kind, subject, basis))


def judge_gates(gates: Iterable[Gate], diff: TraceDiff) -> tuple[GateResult, ...]:
    """Judge every condition, in order."""
    return tuple(_judge(gate, diff) for gate in gates)


def _bounded(expression: str, at: int, gate: Gate) -> Gate:
    operator = _OPERATOR.match(expression, at)
    if operator is None:
        raise _wrong(expression, at, "expected > or >=")
    number = _NUMBER.match(expression, operator.end())
    if number is None:
        raise _wrong(expression, operator.end(), "expected a number")
    unit = _UNIT.match(expression, number.end())
    if unit is None:
        raise _wrong(expression, number.end(), "expected a unit: %, ms, us or s")
    if unit.end() < len(expression):
        raise _wrong(expression, unit.end(), "expected nothing more")
    value = Fraction(number["number"])
    bound = value / 100 if unit["unit"] == "%" else value * _NS[unit["unit"]]
    return Gate(
        gate.expression,
        gate.kind,
        gate.subject,
        gate.basis,
        operator["operator"] == ">=",
        bound,
        unit["unit"],  # type: ignore[arg-type] # the pattern allows no other
    )


def _subject(expression: str, start: int, categories: set[str]) -> str:
    """Find the longest measure or category that stands at `start` as a whole word."""
    known = sorted({*_KEYWORDS, *categories}, key=lambda word: (-len(word), word))
    for word in known:
        after = expression[start + len(word) : start + len(word) + 1]
        if expression.startswith(word, start) and (not after or after in " \t/<>="):
            return word
    match = _WORD.match(expression, start)
    written = match.group() if match else ""
    if not written:
        raise _wrong(expression, start, f"expected {', '.join(_KEYWORDS)} or a category")
    import difflib  # only here: a gate that means something needs no help

    close = difflib.get_close_matches(written, known, 1)
    meant = f', did you mean "{close[0]}"?' if close else ""
    raise _wrong(expression, start, f"no such measure or category{meant}")


def _basis(expression: str, start: int, kind: Kind) -> tuple[int, Basis]:
    match = _BASIS.match(expression, start)
    if match is None or match["basis"] is None:
        return (match.end() if match else start), "pass"
    if kind not in {"total", "category"}:
        raise _wrong(expression, start, "only total and categories are per pass or raw")
    if match["basis"] not in {"pass", "raw"}:
        raise _wrong(expression, match.start("basis"), "expected pass or raw")
    return match.end(), "raw" if match["basis"] == "raw" else "pass"


def _categories(ruleset: RuleSet) -> set[str]:
    declared = ruleset.category_ids
    return {*map(str, declared), *map(ruleset.rollup_of, declared), str(UNLABELLED)}


def _wrong(expression: str, at: int, what: str) -> UsageError:
    shown_expression = shown(expression, limit=200)
    caret = " " * len(shown(expression[:at])) + "^"
    return UsageError(
        "DF003",
        f'{what} at column {at + 1} of "{shown_expression}"',
        location="--fail-on",
        hint=f"{shown_expression or 'an expression such as total>1%'}\n      {caret}",
    )


def _judge(gate: Gate, diff: TraceDiff) -> GateResult:
    match gate.kind:
        case "incomplete":
            failed = diff.base.capture.gaps or diff.new.capture.gaps
            return GateResult(
                gate.expression, failed, _said(diff, INCOMPLETE, "the capture is complete")
            )
        case "incomparable":
            return GateResult(
                gate.expression,
                not diff.comparable,
                _said(diff, INCOMPARABLE, "the sides can be compared"),
            )
        case "new-category":
            return _judge_new(gate, diff)
        case "grade":
            return _judge_grade(gate, diff)
        case _:
            return _judge_increase(gate, diff)


def _said(diff: TraceDiff, codes: frozenset[str], fine: str) -> str:
    said = [finding.message for finding in diff.findings if finding.code in codes]
    return "; ".join(said) or fine


def _judge_new(gate: Gate, diff: TraceDiff) -> GateResult:
    fresh = [row for row in diff.categories if row.status == "new" and row.category != UNLABELLED]
    if gate.bound is not None:
        fresh = [row for row in fresh if _exceeds(gate, _new_size(gate, row, diff))]
    names = ", ".join(f"{row.category} ({_time(row.new.time_ns)})" for row in fresh)
    message = f"new categories: {names}" if fresh else "no new category over the bound"
    return GateResult(gate.expression, bool(fresh), message)


def _new_size(gate: Gate, row: CategoryRow, diff: TraceDiff) -> Fraction:
    if gate.unit == "%":
        return fraction_of(row.new.time_ns, diff.new.kernel_ns)
    return Fraction(row.new.time_ns)


def _judge_grade(gate: Gate, diff: TraceDiff) -> GateResult:
    sizes = []
    for side in (diff.base, diff.new):
        time_ns: int = getattr(side.coverage, gate.subject)
        share = fraction_of(time_ns, side.coverage.total)
        sizes.append((share, time_ns) if gate.unit == "%" else (Fraction(time_ns), time_ns))
    (size, time_ns), side_name = max(zip(sizes, ("base", "new"), strict=True))
    measured = percent(size, signed=False) if gate.unit == "%" else _time(time_ns)
    message = f"{gate.subject} on side {side_name}: {measured}"
    return GateResult(gate.expression, _exceeds(gate, size), message)


def _judge_increase(gate: Gate, diff: TraceDiff) -> GateResult:
    name = gate.subject
    if not diff.conclusive:
        why = _said(diff, INCOMPARABLE | INCOMPLETE | CORRUPT, "no conclusion")
        return GateResult(gate.expression, failed=True, message=f"{name} cannot be judged: {why}")
    row = by_category(diff.categories).get(CategoryId(name))
    if gate.kind == "total":
        base_ns, new_ns = diff.base.kernel_ns, diff.new.kernel_ns
    elif row is None:
        absent = f"{name} does not occur on either side"
        return GateResult(gate.expression, failed=False, message=absent)
    else:
        base_ns, new_ns = row.base.time_ns, row.new.time_ns
    scale = diff.work.scale if gate.basis == "pass" else Fraction(1)
    delta = new_ns / scale - base_ns
    message = f"{name} {_measured(delta, base_ns)} {_basis_words(gate, diff)}"
    if gate.unit != "%":
        return GateResult(gate.expression, _exceeds(gate, delta), message)
    if not base_ns:
        return GateResult(gate.expression, new_ns > 0, f"{message}; the base has none")
    return GateResult(gate.expression, _exceeds(gate, delta / base_ns), message)


def _basis_words(gate: Gate, diff: TraceDiff) -> str:
    if gate.basis == "raw":
        return "in raw sums"
    return "at equal work" if diff.work.equal else f"at equal work ({gate.subject}/raw is of sums)"


def _exceeds(gate: Gate, size: Fraction) -> bool:
    bound = gate.bound or Fraction(0)
    return size >= bound if gate.inclusive else size > bound


def _measured(delta: Fraction, base_ns: int) -> str:
    relative = f" ({percent(delta / base_ns)})" if base_ns else ""
    millis = Millis.fitting(abs(round(delta)))
    return f"{millis(delta, signed=True)} ms{relative}"


def _time(ns: int) -> str:
    return f"{Millis.fitting(ns)(ns)} ms"
