"""Time matching: all patterns at once against one by one, and hostile patterns for linearity.

    python benchmarks/rules.py [--rules 300] [--names 5000] [--repeat 3]

Names are made from the families of the built-in rules' examples, so nothing else is needed. Each
figure is the median of several runs in one process, in CPU seconds: other work on the machine does
not count. Read the ratios, not the seconds.
"""

from __future__ import annotations

import argparse
import random
import re
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import re2

from agent.core.kernels import KernelName, Signature
from agent.core.names import canonical_name
from agent.core.rules import CategoryId, Rule, RuleId, RuleSet
from agent.ruleset.codec import load_builtin
from agent.ruleset.match import Matcher, options

HOSTILE = {
    "nested repetition": (r"(x+x+)+y", "x"),
    "nested words": (r"^void (\w+_?)+kernel$", "a_"),
    "ambiguous alternatives": (r"(a|aa)+$", "a"),
    "optional then counted": (r"(?:a?){200}a{200}$", "a"),
    "states that double": (r"[ab]*a[ab]{14}c", "ab"),
    "counted in counted": (r"(?:\w{1,50}_){1,10}x", "a_"),
    "long count": (r".{1,1000}z", "a"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rules", type=int, default=300)
    parser.add_argument("--names", type=int, default=5_000)
    parser.add_argument("--repeat", type=int, default=3)
    chosen = parser.parse_args()
    rng = random.Random(20_26)
    examples = sorted({name for rule in load_builtin().rules for name in rule.examples})
    rules = made_rules(rng, examples, chosen.rules)
    for label, names in (
        ("names as they are", made_names(rng, examples, chosen.names, 0)),
        ("names of 5 kB", made_names(rng, examples, chosen.names, 5_000)),
        (
            "names of 5 kB with .kd",
            [name + ".kd" for name in made_names(rng, examples, chosen.names, 5_000)],
        ),
    ):
        size = sum(map(len, names)) / 1e6
        print(f"{len(rules.rules)} rules on {len(names)} distinct {label} ({size:.1f} MB)")
        report(rules, names, chosen.repeat)
    print("hostile patterns: CPU seconds for 5, 10 and 20 kB, and the growth (2 is linear)")
    for label, (pattern, letters) in HOSTILE.items():
        times = [
            hostile_seconds(pattern, letters, size, chosen.repeat)
            for size in (5_000, 10_000, 20_000)
        ]
        growth = times[2] / times[1] if times[1] else 0.0
        print(f"  {label:26} {' '.join(f'{seconds:.6f}' for seconds in times)}  x{growth:.1f}")


def report(rules: RuleSet, names: Sequence[str], repeat: int) -> None:
    signatures = [Signature(KernelName(name)) for name in names]

    def label_all() -> None:
        canonical_name.cache_clear()
        matcher = Matcher(rules)
        for signature in signatures:
            matcher.label(signature)

    def one_by_one() -> None:
        compiled = [re2.compile(rule.kernel.encode(), options()) for rule in rules.rules]
        for name in encoded:
            next((True for pattern in compiled if pattern.search(name)), False)

    def as_a_set() -> None:
        roomy = options()
        roomy.max_mem = 64 << 20  # a set of 300 patterns does not even build in less than 8 MB
        built = re2.Set.SearchSet(roomy)
        for rule in rules.rules:
            built.Add(rule.kernel.encode())
        built.Compile()
        for name in encoded:
            built.Match(name)

    encoded = [canonical_name(name).encode() for name in names]
    ours = median(label_all, repeat)
    print(f"  label-agent, canonical names included {ours:8.3f} s   1.0")
    for label, run in (
        ("one pattern after the other", one_by_one),
        ("re2.Set with 64 MB", as_a_set),
    ):
        seconds = median(run, 1)
        print(f"  {label:37} {seconds:8.3f} s {seconds / ours:5.1f}")


def made_rules(rng: random.Random, examples: Sequence[str], count: int) -> RuleSet:
    builtin = load_builtin()
    patterns = [rule.kernel for rule in builtin.rules][:count]
    words = sorted({word for name in examples for word in re.findall(r"\w{8,30}", name)})
    while len(patterns) < count:
        word = rng.choice(words)
        patterns.append(
            rng.choice(
                [word, rf"\b{word}(?:_kernel)?<", rf"^(?:void )?{word}", rf"{word[:8]}.*lambda"]
            )
        )
    rules = tuple(
        Rule(RuleId(f"r{index}"), CategoryId("Misc"), pattern, "vendor")
        for index, pattern in enumerate(patterns)
    )
    return RuleSet("bench", 1, "", builtin.categories, rules)


def made_names(rng: random.Random, examples: Sequence[str], count: int, length: int) -> list[str]:
    """Vary real names; with a length, repeat each up to it, as nested templates repeat theirs."""
    names = []
    for index in range(count):
        example = rng.choice(examples)
        name = f"{example}_{index}"
        while len(name) < length:
            name += ", " + example
        names.append(name[:length] + str(index) if length else name)
    return names


def hostile_seconds(pattern: str, letters: str, size: int, repeat: int) -> float:
    rule = Rule(RuleId("r"), CategoryId("Misc"), pattern, "vendor")
    rng = random.Random(size)
    name = "".join(rng.choice(letters) for _ in range(size))

    def label() -> None:
        matcher = Matcher(RuleSet("bench", 1, "", (), (rule,)))
        matcher.label(Signature(KernelName(name)))

    return median(label, repeat)


def median(run: Callable[[], None], repeat: int) -> float:
    times = []
    for _ in range(repeat):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return statistics.median(times)


if __name__ == "__main__":
    main()
