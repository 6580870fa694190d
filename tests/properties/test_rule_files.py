"""Rule files: what is written is read back, and editing twice is editing twice."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from agent.core.proposals import EVIDENCE_KINDS, Evidence, Origin, Pin
from agent.core.rules import GRADES, Acceptance, Category, CategoryId, Rule, RuleId
from agent.core.vocabulary import VOCABULARY
from agent.ruleset.codec import parse_rules
from agent.ruleset.editing import with_evidence, with_rule
from agent.ruleset.writing import file_text, rule_text

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
AWKWARD = st.text(alphabet="a'\"\\\n\t\r #[]{}=", max_size=12)
ANY_TEXT = st.one_of(TEXT, AWKWARD)
SOME_TEXT = ANY_TEXT.filter(bool)
SHAS = st.text("0123456789abcdef", min_size=40, max_size=40)
NAMES = st.lists(
    st.sampled_from(["moe_gemm1_0", "void moe_gemm2_x<int>(int)", "_Z10moe_gemm1_v.kd"]), max_size=3
)
OTHER_NAMES = st.lists(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=9), max_size=3
)
PINS = st.builds(
    Pin,
    commit=st.just(""),
    mode=ANY_TEXT,
    blob=SOME_TEXT,
    node=ANY_TEXT,
    qualname=ANY_TEXT,
    guards=st.lists(ANY_TEXT, max_size=2).map(tuple),
    snippet_sha256=ANY_TEXT,
    grammar=ANY_TEXT,
    parse=st.sampled_from(["clean", "recovered", "lexical"]),
    trace_match=ANY_TEXT,
)


def _evidence(pin: Pin | None, commit: str, **fields: object) -> Evidence:
    pinned = replace(pin, commit=commit) if pin else None
    return Evidence(commit=commit, pin=pinned, **fields)  # type: ignore[arg-type]


EVIDENCE = st.builds(
    _evidence,
    pin=st.none() | PINS,
    commit=SHAS,
    kind=st.sampled_from(EVIDENCE_KINDS),
    repo=SOME_TEXT,
    path=SOME_TEXT,
    lines=st.tuples(st.integers(1, 99), st.integers(1, 99)),
    symbol=ANY_TEXT,
    guard=ANY_TEXT,
    snippet=ANY_TEXT,
)
RULES = st.builds(
    Rule,
    id=st.from_regex(r"\A[a-z][a-z0-9._-]{0,8}\Z").map(RuleId),
    category=st.sampled_from([row[0] for row in VOCABULARY]).map(CategoryId),
    kernel=st.sampled_from(["moe_gemm[12]_", r"\bmoe_gemm\d", "(?:x'y|moe_gemm)"]),
    grade=st.sampled_from(GRADES),
    op=st.sampled_from(["", "^aten::copy_$"]),
    input_dtypes=st.lists(st.sampled_from(["", "c10::BFloat16"]), max_size=3).map(tuple),
    overrides=st.lists(ANY_TEXT, max_size=2).map(tuple),
    examples=NAMES.map(tuple),
    counterexamples=OTHER_NAMES.map(tuple),
    evidence=st.lists(EVIDENCE, max_size=2).map(tuple),
    proposed_by=st.none()
    | st.builds(Origin, **dict.fromkeys(Origin.__dataclass_fields__, ANY_TEXT)),
    accepted_by=st.none() | st.builds(Acceptance, author=ANY_TEXT, date=ANY_TEXT),
    note=ANY_TEXT,
)
RULE_LISTS = st.lists(RULES, max_size=4, unique_by=lambda rule: rule.id)


def bare(rules: tuple[Rule, ...]) -> list[Rule]:
    return [replace(rule, source="", line=0) for rule in rules]


@given(RULE_LISTS, st.integers(1, 10**6), st.booleans())
def test_what_is_written_is_read_back(rules: list[Rule], version: int, crlf: bool) -> None:
    category = Category(CategoryId("Mine"), "It's", "Others")
    text = file_text(version=version, categories=[category], rules=rules)
    ruleset = parse_rules(text.replace("\n", "\r\n") if crlf else text)
    assert bare(ruleset.rules) == rules
    assert ruleset.version == version
    assert ruleset.categories[-1] == category
    again = file_text(version=version, categories=[category], rules=ruleset.rules)
    assert again == text


@given(RULE_LISTS)
def test_rules_added_one_by_one_are_the_file_written_at_once(rules: list[Rule]) -> None:
    text = "schema = 1\nversion = 1\n"
    for rule in rules:
        text = with_rule(text, rule)
    assert text == file_text(version=1 + len(rules), rules=rules)


@settings(max_examples=50)
@given(RULE_LISTS, RULES, st.lists(EVIDENCE, max_size=3), st.data())
def test_evidence_is_rewritten_in_one_rule_alone(
    rules: list[Rule], rule: Rule, entries: list[Evidence], data: st.DataObject
) -> None:
    rule = replace(rule, id=RuleId("the-one"), evidence=tuple(entries))
    wanted = tuple(data.draw(EVIDENCE) for _ in entries)
    text = file_text(version=1, rules=[*rules, rule])
    new = with_evidence(text, {rule.id: wanted})
    *others, changed = bare(parse_rules(new).rules)
    assert others == rules
    assert changed == replace(rule, evidence=wanted)


@given(RULE_LISTS.filter(lambda rules: len(rules) > 1))
def test_the_order_of_rules_is_part_of_the_meaning(rules: list[Rule]) -> None:
    one = parse_rules(file_text(version=1, rules=rules))
    other = parse_rules(file_text(version=1, rules=rules[::-1]))
    assert one.digest != other.digest


@given(RULES)
def test_the_text_of_a_rule_has_no_line_a_terminal_would_obey(rule: Rule) -> None:
    assert not set(rule_text(rule)) & set(map(chr, (*range(9), *range(11, 32), 127)))
