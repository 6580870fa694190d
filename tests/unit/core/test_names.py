"""Canonical names: one spelling for one kernel, whoever wrote its name."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.names import canonical_name
from tests.spellings import spellings

COPY = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::float8_copy_kernel_cuda("
    "at::TensorIteratorBase&)::{lambda(c10::BFloat16)#3}, std::array<char*, 2ul> >(int, "
    "at::native::float8_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(c10::BFloat16)#3}, "
    "std::array<char*, 2ul>)"
)
MANGLED = (
    "_ZN2at6native29vectorized_elementwise_kernelILi4EZNS0_23float8_copy_kernel_cudaE"
    "RNS_18TensorIteratorBaseEEUlN3c108BFloat16EE1_St5arrayIPcLm2EEEEviT0_T1_"
)
SPELLINGS = {
    "Kineto's own spelling": COPY,
    "with a clone suffix": COPY + " [clone .kd]",
    "with LLVM's clone suffix": COPY + " (.kd)",
    "mangled": MANGLED,
    "mangled, of a code object": MANGLED + ".kd",
    "demangled by LLVM": COPY.replace(
        "{lambda(c10::BFloat16)#3}", "'lambda1'(c10::BFloat16)"
    ).replace("> >", ">>"),
    "written by nsys": COPY.replace(
        "{lambda(c10::BFloat16)#3}", "[lambda(c10::BFloat16) (instance 3)]"
    )
    .replace("<4,", "<(int)4,")
    .replace("2ul", "(unsigned long)2")
    .replace("char*", "char *")
    .replace("Base&", "Base &")
    .replace("> >", ">>"),
}


@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=SPELLINGS.keys())
def test_one_kernel_has_one_canonical_name(spelling: str) -> None:
    assert canonical_name(spelling) == COPY


@pytest.mark.parametrize(
    ("raw", "canonical"),
    [
        ("attn_fwd", "attn_fwd"),
        ("attn_fwd.kd", "attn_fwd"),
        ("_ZZ3foovENKUlvE_clEv", "foo()::{lambda()#1}::operator()() const"),
        ("_ZZ3foovENKUlvE0_clEv", "foo()::{lambda()#2}::operator()() const"),
        ("f<'unnamed'>(int, 'unnamed0')", "f<{unnamed type#1}>(int, {unnamed type#2})"),
        ("f<'lambda'(g<'lambda0'(int)>)>()", "f<{lambda(g<{lambda(int)#2}>)#1}>()"),
        ("void a::<unnamed>::k<int>(int)", "void a::(anonymous namespace)::k<int>(int)"),
        ("void a::(unnamed namespace)::k(int)", "void a::(anonymous namespace)::k(int)"),
        ("void a::(unnamed)::k(int)", "void a::(anonymous namespace)::k(int)"),
        ("k<(bool)1, (bool)0, (unsigned int)7>", "k<true, false, 7u>"),
        ("k<std::operator>>(int)>", "k<std::operator>>(int)>"),
        ("f<&g>(int &&, char const *)", "f<&g>(int&&, char const*)"),
        (
            "f<[lambda(g<[lambda(int) (instance 2)]>) (instance 1)]>",
            "f<{lambda(g<{lambda(int)#2}>)#1}>",
        ),
        ("x::[lambda() (instance 4)]::operator ()() const", "x::{lambda()#4}::operator()() const"),
    ],
)
def test_spelling(raw: str, canonical: str) -> None:
    assert canonical_name(raw) == canonical


@pytest.mark.parametrize(
    "raw",
    [
        "",
        "_Z",
        "_ZN",
        "_Znot mangled",
        "'lambda'(",
        "a)b'lambda'(c",
        "[lambda( (instance 3)]",
        "\udc80_Z",
    ],
)
def test_a_name_that_is_no_name_is_left_alone(raw: str) -> None:
    assert canonical_name(raw) == raw


def _doubling(levels: int) -> str:
    """Each parameter names the one before twice: output doubles with six characters of input."""
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"

    def reference(index: int) -> str:
        high, low = divmod(index - 1, 36)
        return f"S{digits[high] if high else ''}{digits[low]}_"

    name = "_Z1f1AIiE"
    for level in range(levels):
        last = reference(2 * level + 1)
        name += f"3B{level:02}I{last}{last}E"
    return name


def _nested_templates(levels: int) -> str:
    inner = "i"
    for _ in range(levels):
        inner = f"Z1fI{inner}EvT_T_EUlvE_"
    return f"_Z1gI{inner}EvT_"


@pytest.mark.parametrize(
    "bomb", [_doubling(40), _doubling(99), _nested_templates(40), _nested_templates(500)]
)
def test_a_name_that_would_demangle_to_gigabytes_is_left_alone(bomb: str) -> None:
    assert canonical_name(bomb) == bomb


def test_a_deeply_nested_name_does_not_end_the_process() -> None:
    script = (
        "from agent.core.names import canonical_name as c\n"
        "for unit, end in [('P', 'i'), ('1AI', 'i'), ('Z', '1fvE'), ('PF', 'iiE'), ('ng', 'Li1E')]:\n"
        "    for start in ('_Z1f', '_Z1fIX', '_Z'):\n"
        "        c(start + unit * (8000 // len(unit)) + end)\n"
        "        c((start + unit * 1000 + end * 1000)[:8000])\n"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


@given(st.text(alphabet="_ZNSTUlE0123iPKabc'(){}<>[]&*, .kd#", max_size=80))
def test_canonical_names_are_canonical(raw: str) -> None:
    once = canonical_name(raw)
    assert canonical_name(once) == once


def test_real_symbols_agree_with_the_profilers_demangler(shared: Path) -> None:
    """rocprofv3 writes each symbol mangled and demangled by libiberty; 4,451 of its are C++."""
    text = gzip.decompress((shared / "traces" / "rocprofv3_results.json.gz").read_bytes())
    symbols = json.loads(text)["rocprofiler-sdk-tool"][0]["kernel_symbols"]
    pairs = {
        symbol["kernel_name"]: symbol["demangled_kernel_name"]
        for symbol in symbols
        if symbol["kernel_name"].startswith("_Z")
    }
    different = [
        mangled
        for mangled, demangled in pairs.items()
        if canonical_name(mangled) != canonical_name(demangled)
    ]
    # LLVM reads the last parameter of these as the lambda's, see docs/decisions/0032.
    assert all("masked_scale_kernel" in mangled for mangled in different)
    assert len(pairs) > 4_000
    assert len(different) < 60


def test_every_spelling_of_a_real_name_has_one_canonical_name(shared: Path) -> None:
    lines = (shared / "truth" / "kernel_names.tsv").read_text(encoding="utf-8").splitlines()[1:]
    names = [line.split("\t")[0] for line in lines]
    assert len(names) > 200
    for name in names:
        assert {canonical_name(spelling) for spelling in spellings(name)} == {canonical_name(name)}
