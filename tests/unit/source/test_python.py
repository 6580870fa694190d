"""What is read from Python source: guards, kernels, emission sites, casts."""

from __future__ import annotations

from textwrap import dedent

import pytest

from agent.source.names import kernel_ref, origin_of
from agent.source.parse import TreeCache, ancestors
from agent.source.python.casts import read_cast
from agent.source.python.guards import atoms, guard_chain, same_guard
from agent.source.python.inductor import function_operators, name_operators
from agent.source.python.kernels import kernels_in
from agent.source.python.sites import region, sites_named
from agent.source.python.text import py_text
from agent.source.python.tree import functions
from agent.source.snapshot import SourceFile
from tests.checkouts import BACKEND, line_of


def source(text: str) -> SourceFile:
    content = dedent(text).encode()
    return SourceFile("repo", "pkg/file.py", str(hash(content)), content)


def guards_of(text: str, mark: str = "HERE") -> tuple[str, ...]:
    file, trees = source(text), TreeCache()
    offset = file.text.index(mark.encode())
    tree = trees.tree(file, "python")
    assert tree is not None
    return guard_chain(ancestors(tree.root_node, offset, offset + len(mark)))


@pytest.mark.parametrize(
    ("text", "guards"),
    [
        ("def f():\n  if a:\n    HERE()\n", ("+a",)),
        ("def f():\n  if a:\n    pass\n  else:\n    HERE()\n", ("-a",)),
        ("def f():\n  if a:\n    pass\n  elif b:\n    HERE()\n", ("-a", "+b")),
        ("def f():\n  if a:\n    pass\n  elif b:\n    pass\n  else:\n    HERE()\n", ("-a", "-b")),
        ("def f():\n  if not a:\n    HERE()\n", ("-a",)),
        ("def f():\n  if a and not b:\n    HERE()\n", ("+a", "-b")),
        ("def f():\n  if a or b:\n    HERE()\n", ("+a or b",)),
        ("def f():\n  if a or b:\n    pass\n  else:\n    HERE()\n", ("-a", "-b")),
        ("def f():\n  if a and b:\n    pass\n  else:\n    HERE()\n", ("-a and b",)),
        ("def f():\n  if a:\n    return\n  HERE()\n", ("-a",)),
        ("def f():\n  if a:\n    raise E\n  HERE()\n", ("-a",)),
        ("def f():\n  for x in y:\n    if a:\n      continue\n    HERE()\n", ("-a",)),
        (
            "def f():\n  if a:\n    if b:\n      return\n    else:\n      raise E\n  HERE()\n",
            ("-a",),
        ),
        ("def f():\n  if a:\n    if b:\n      return\n  HERE()\n", ()),
        ("def f():\n  if a:\n    print(1)\n  HERE()\n", ()),
        ("def f():\n  if a:\n    return\n  else:\n    pass\n  HERE()\n", ()),
        ("def f():\n  assert a\n  HERE()\n", ("+a",)),
        ("def f():\n  while a:\n    HERE()\n", ("+a",)),
        ("def f():\n  x = HERE() if a else 0\n", ("+a",)),
        ("def f():\n  x = 0 if a else HERE()\n", ("-a",)),
        ("def f():\n  a and HERE()\n", ("+a",)),
        ("def f():\n  a or HERE()\n", ("-a",)),
        ("def f():\n  if HERE():\n    pass\n", ()),
        ("def f():\n  try:\n    pass\n  except KeyError:\n    HERE()\n", ("+except KeyError",)),
        ("def f():\n  x = [HERE(i) for i in y if a]\n", ("+a",)),
        ("if a:\n  def f():\n    HERE()\n", ()),
        ("def f():\n  if a:\n    def g():\n      HERE()\n", ()),
        ("def f():\n  if (\n      a  # why\n      == b\n  ):\n    HERE()\n", ("+a == b",)),
    ],
)
def test_the_guard_chain_has_each_condition_with_its_polarity(
    text: str, guards: tuple[str, ...]
) -> None:
    assert guards_of(text) == guards


def test_a_real_chain_names_what_must_and_must_not_hold() -> None:
    assert guards_of(BACKEND, "kvc.to(dtype)") == (
        "+self.use_mla",
        "+layer.qk_head_dim != self.lora_rank + self.rope_dim",
        "+self.kv_cache_dtype == fp8_dtype",
    )
    assert guards_of(BACKEND, "k_cache.to(dtype)")[0] == "-self.use_mla"


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ("+a == b", "+a  ==  b", True),
        ("-a == b", "+a != b", True),
        ("-a is None", "+a is not None", True),
        ("-a in b", "+a not in b", True),
        ("+a == b", "-a == b", False),
        ("+a", "+b", False),
    ],
)
def test_guards_are_compared_with_comparisons_turned_round(
    left: str, right: str, same: bool
) -> None:
    assert same_guard(left, right) is same


def test_a_stated_guard_splits_into_what_must_hold() -> None:
    assert atoms("not (a == b or c) and d.x") == ("-a == b", "-c", "+d.x")


KERNELS = """
import triton
from triton import jit
from triton.experimental import gluon
import flydsl.compiler as flyc
import torch
import numba
from lib import make_kernel_repr

_repr = make_kernel_repr("_printed_name", ["BLOCK_M", "ACT"])
NAME = f"made_up_{x}_kernel_{y}"
NAME += "_A" if x else "_B"

@triton.jit
def plain(x): pass

@jit
def imported(x): pass

@triton.autotune(configs=[], key=[])
@triton.heuristics({})
@triton.jit(do_not_specialize=["n"])
def stacked(x): pass

@triton.jit(repr=_repr)
def python_name(x): pass

@triton.jit(repr=lambda spec: f"lambda_made_{spec.name}_kernel")
def by_lambda(x): pass

@gluon.jit
def gluon_kernel(x): pass

@torch.jit.script
def not_a_kernel(x): pass

@numba.njit
def numba_function(x): pass

@flyc.kernel(name="flydsl_named_kernel")
def inner_a(x): pass

@flyc.kernel
def flydsl_plain(x): pass

@flyc.kernel(name=NAME)
def inner_b(x): pass

class Holder:
    @triton.jit
    def method_kernel(x): pass
"""


@pytest.mark.parametrize(
    ("name", "function", "origin"),
    [
        ("plain", "plain", "triton"),
        ("imported", "imported", "triton"),
        ("stacked", "stacked", "triton"),
        ("_printed_name_BLOCK_M_16_ACT_silu", "python_name", "triton-repr"),
        ("_printed_name_BLOCK_M_16", "python_name", "triton-repr"),
        ("lambda_made_abc_kernel", "by_lambda", "triton-repr"),
        ("gluon_kernel", "gluon_kernel", "gluon"),
        ("flydsl_named_kernel_0", "inner_a", "flydsl"),
        ("flydsl_plain_3", "flydsl_plain", "flydsl"),
        ("made_up_1_kernel_2_B", "inner_b", "flydsl"),
        ("method_kernel", "Holder.method_kernel", "triton"),
    ],
)
def test_a_definition_accepts_the_name_a_profiler_prints(
    name: str, function: str, origin: str
) -> None:
    tree = TreeCache().tree(source(KERNELS), "python")
    assert tree is not None
    found = [kernel for kernel in kernels_in(tree.root_node) if kernel.accepts(name)]
    assert [(one.function.qualname, one.origin) for one in found] == [(function, origin)]


@pytest.mark.parametrize(
    "name",
    [
        "plain_kernel", "_printed_name", "python_name", "_printed_name_ACT_1_BLOCK_M_2",
        "_printed_name_EXTRA_1", "not_a_kernel", "numba_function", "lambda_made_", "made_up_1",
        "inner_b", "xplain", "stacked_0",
    ],
)  # fmt: skip
def test_a_definition_accepts_no_other_name(name: str) -> None:
    tree = TreeCache().tree(source(KERNELS), "python")
    assert tree is not None
    assert not [one.shown for one in kernels_in(tree.root_node) if one.accepts(name)]


def test_a_short_template_accepts_nothing() -> None:
    text = 'import flydsl as flyc\nN = f"k_{a}_{b}"\n@flyc.kernel(name=N)\ndef f(x): pass\n'
    tree = TreeCache().tree(source(text), "python")
    assert tree is not None
    assert not [one for one in kernels_in(tree.root_node) if one.accepts("k_1_2")]


def codes(text: str, first: int, last: int = 0) -> list[str]:
    return [one.code for one in region(source(text), TreeCache(), (first, last or first)).findings]


REGION = """\
import torch
from lib import launch_it
'''module text
launch_it(1)
'''


def outer(x, out):
    '''Call launch_it(x) for you.'''
    # launch_it(x)
    logger.info("launch_it(x) %s", launch_it.name)
    y = launch_it(
        x,
        1,
    )
    out[x] = y
    z = x + 1
    text = "launch_it(x)"
    return y


launch_it(0)


@torch.library.register_fake("ns::op")
def shape_of(x):
    return launch_it(x)


@triton.jit
def device(x):
    return helper(x)
"""


@pytest.mark.parametrize(
    ("first", "last", "code"),
    [
        (1, 2, "E_NO_MATCHING_NODE"),
        (4, 4, "E_IN_STRING"),
        (9, 9, "E_IN_STRING"),
        (10, 10, "E_IN_COMMENT"),
        (11, 11, "E_NO_MATCHING_NODE"),
        (13, 13, "E_NO_MATCHING_NODE"),
        (13, 16, "E_NO_MATCHING_NODE"),
        (17, 17, "E_NO_MATCHING_NODE"),
        (18, 18, "E_NO_MATCHING_NODE"),
        (20, 20, "E_NO_MATCHING_NODE"),
        (22, 22, "E_NOT_IN_FUNCTION"),
        (27, 27, "E_IN_STUB"),
        (32, 32, "E_IN_KERNEL"),
    ],
)
def test_lines_that_are_no_emission_say_why(first: int, last: int, code: str) -> None:
    assert codes(REGION, first, last) == [code]


@pytest.mark.parametrize(("first", "last"), [(12, 12), (12, 15), (16, 16), (12, 16)])
def test_a_call_a_store_and_whole_statements_are_emissions(first: int, last: int) -> None:
    found = region(source(REGION), TreeCache(), (first, last))
    assert not found.findings
    assert found.qualname == "outer"


def test_a_launch_is_named_by_the_kernel_before_its_grid() -> None:
    text = "def f(x):\n    self.kernels.my_kernel[(1, 2)](x)\n    torch.ops.ns.my_op.default(x)\n"
    sites = region(source(text), TreeCache(), (2, 3)).sites
    assert [(one.kind, one.symbol) for one in sites] == [("launch", "my_kernel"), ("call", "my_op")]


CASTS = """\
class LatentPool:
    def set_kv_buffer(self, cache_k, x):
        if cache_k.dtype != self.dtype:
            a = cache_k.to(self.dtype)
        self.kv_buffer[0][1] = cache_k

class Backend:
    def forward(self, q, kvc, w_kc, dst_dtype):
        dtype = q.dtype
        if self.kv_cache_dtype == fp8_dtype:
            b = kvc.to(dtype)
        c = kvc.to("cpu", non_blocking=True)
        d = kvc.to(torch.int32)
        e = w_kc.to(torch.bfloat16)
        f = k_cache.to(dst_dtype)
        g = k_cache.to(torch.float8_e4m3fn)
        h = k_cache.bfloat16()
        i = k_cache.to(device=q.device, dtype=torch.bfloat16)
        j = q.to(fp8_dtype)
"""


@pytest.mark.parametrize(
    ("line", "direction", "kind", "on_path"),
    [
        (4, "to", "cache", True),
        (5, "to", "cache", True),
        (11, "from", "wide", True),
        (12, "none", "device", True),
        (13, "none", "other", True),
        (14, "unknown", "wide", False),
        (15, "unknown", "parameter", True),
        (16, "to", "fp8", True),
        (17, "from", "wide", True),
        (18, "from", "wide", True),
        (19, "to", "fp8", False),
    ],
)
def test_a_conversion_has_a_direction_or_says_that_it_is_unknown(
    line: int, direction: str, kind: str, on_path: bool
) -> None:
    found = region(source(CASTS), TreeCache(), (line, line)).sites
    cast = read_cast(found[0], "python/engine/backend.py")
    assert cast is not None
    assert (cast.direction, cast.kind, cast.on_kv_path) == (direction, kind, on_path)


def test_the_operators_of_a_generated_name_are_those_of_the_compiled_body() -> None:
    text = "def f(x, y):\n    return (x * 2 + y).to(torch.float16).sum()\n"
    tree = TreeCache().tree(source(text), "python")
    assert tree is not None
    (function,) = tree.root_node.named_children
    assert name_operators("triton_red_fused__to_copy_add_mul_sum_3") == function_operators(function)
    assert name_operators("triton_poi_fused_frobnicate_0") is None


def test_every_function_is_listed_with_its_owner_and_decorators() -> None:
    tree = TreeCache().tree(source(KERNELS), "python")
    assert tree is not None
    found = {one.qualname: one for one in functions(tree.root_node)}
    stacked = found["stacked"]
    assert (stacked.line - stacked.first, len(stacked.decorators)) == (3, 3)
    assert "Holder.method_kernel" in found


def test_calls_of_a_name_are_found_with_their_guards() -> None:
    (site,) = sites_named(source(BACKEND), TreeCache(), "mla_decode_fwd")
    assert site.line == line_of(BACKEND, "    mla_decode_fwd(\n".rstrip("\n"), 1)
    assert site.qualname == "AiterAttnBackend.forward_decode"
    assert site.guards == ("+self.use_mla",)


def test_mentions_tell_calls_launches_and_prose_apart() -> None:
    import re

    parsed = py_text(dedent(REGION).encode())
    found = [one.how for one in parsed.mentions(re.compile(rb"\blaunch_it\b"))]
    assert found == [
        "import",
        "prose",
        "prose",
        "prose",
        "reference",
        "call",
        "prose",
        "call",
        "call",
    ]


@pytest.mark.parametrize(
    ("raw", "qualified", "origin"),
    [
        ("_fwd_kernel_stage2.kd", "_fwd_kernel_stage2", "unknown"),
        ("void ns::k<int, 4>(int*)", "ns::k", "hip-global"),
        ("void (anonymous namespace)::k<4>(int)", "(anonymous namespace)::k", "hip-global"),
        ("_ZN5aiter37dynamic_per_group_scaled_quant_kernelIDF16bDB8_Li32EE", "aiter::dynamic_per_group_scaled_quant_kernel", "hip-global"),
        ("_ZN5aiter35fused_qk_rmsnorm_group_quant_kernelIDF16b...", "aiter::fused_qk_rmsnorm_group_quant_kernel", "hip-global"),
        ("std::enable_if<(((8)>(0)))&&x<int>::exists, void>::type vllm::norm<c10::BFloat16>(int)", "vllm::norm", "hip-global"),
        ("Cijk_Alik_Bljk_BBS_BH", "Cijk_Alik_Bljk_BBS_BH", "external"),
        ("ncclDevKernel_Generic_1(ncclArgs)", "ncclDevKernel_Generic_1", "external"),
        ("void rocprim::detail::scan<int>()", "rocprim::detail::scan", "external"),
        ("triton_poi_fused_add_0", "triton_poi_fused_add_0", "inductor"),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<int> >(int)", "at::native::vectorized_elementwise_kernel", "aten"),
        ("void at::native::x<at::native::float8_copy_kernel_cuda(at::T&)::{lambda(float)#1}>(int)", "at::native::x", "aten-cast"),
        ("void ck_tile::kentry<2, ck_tile::MoeSorting<int> >(int)", "ck_tile::kentry", "ck"),
    ],
)  # fmt: skip
def test_a_kernel_name_is_taken_apart(raw: str, qualified: str, origin: str) -> None:
    assert kernel_ref(raw).qualified == qualified
    assert origin_of(raw) == origin


def test_a_ck_entry_names_the_type_it_runs() -> None:
    assert (
        kernel_ref("void ck_tile::kentry<2, ck_tile::Sort<int>, x>(y)").payload == "ck_tile::Sort"
    )
