"""The proposer without a model proposes what it can prove, and abstains from the rest."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from agent.core.kernels import FrameUse, KernelName
from agent.core.proposals import Evidence
from agent.core.source import Candidate, EnclosingFunction
from agent.core.vocabulary import VOCABULARY
from agent.proposing.offline import propose_offline
from agent.proposing.patterns import cast_pattern, pattern_for
from agent.proposing.words import told_by
from agent.review.gate import judge_proposal
from agent.ruleset.match import Pattern
from tests.unit.proposing.fakes import MemorySource, candidate, demo_dossiers, dossiers

CATEGORIES = frozenset(name for name, _, _ in VOCABULARY)
COPY = (
    "void at::native::elementwise_kernel<512, 1, at::native::gpu_kernel_impl{}<at::native::"
    "direct_copy_kernel_cuda(at::TensorIteratorBase&)::{{lambda()#3}}::operator()() const::"
    "{{lambda()#12}}::operator()() const::{{lambda({})#1}}>(at::TensorIteratorBase&)>(int)"
)

TO_FP8 = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::float8_copy_kernel_cuda("
    "at::TensorIteratorBase&)::{lambda(c10::BFloat16)#3}, std::array<char*, 2ul> >(int)"
)
WRITES = ("c10::Float8_e4m3fnuz", "c10::BFloat16")


def test_all_four_families_of_the_demo_are_admitted_with_their_category(tmp_path: Path) -> None:
    found, gate = demo_dossiers(tmp_path / "demo")
    admitted = {}
    for dossier in found:
        made = propose_offline(dossier, gate["ruleset"].category_ids)
        assert not isinstance(made, str), made
        verdict = judge_proposal(made[0], **gate)
        assert verdict.admitted, verdict.findings
        admitted[verdict.proposal.category] = dossier.names[0].raw
    assert {category: _short(name) for category, name in admitted.items()} == {
        "MLA": "latent_dec",
        "CastFromFP8": "direct_copy_kernel_cuda",
        "TopK": "expert_gate_pick",
        "RoPE": "_rotate_pairs_inplace",
    }


def _short(name: str) -> str:
    known = ("latent_dec", "direct_copy_kernel_cuda", "expert_gate_pick", "_rotate_pairs_inplace")
    return next(part for part in known if part in name)


def test_equal_dossiers_give_equal_proposals() -> None:
    first, second = (propose_offline(dossiers(MemorySource())[0], CATEGORIES) for _ in range(2))
    assert first == second
    assert not isinstance(first, str)
    assert first[0].category == "RMSNorm"


def test_a_category_that_the_rule_file_lacks_is_never_proposed() -> None:
    answer = propose_offline(dossiers(MemorySource())[0], CATEGORIES - {"RMSNorm"})
    assert answer == "RMSNorm is no category of the rule file"


def test_two_definitions_of_one_name_are_left_undecided() -> None:
    dossier = dossiers(MemorySource())[0]
    other = candidate(evidence=(replace(candidate().evidence[0], path="layers/other.py"),))
    answer = propose_offline(replace(dossier, candidates=(candidate(), other)), CATEGORIES)
    assert answer == "several definitions make this name: layers/other.py:2, layers/rms_norm.py:2"


def test_without_a_candidate_there_is_no_proposal() -> None:
    dossier = replace(dossiers(MemorySource())[0], candidates=())
    assert isinstance(propose_offline(dossier, CATEGORIES), str)


def test_a_vendor_library_is_never_proposed_for() -> None:
    dossier = dossiers(MemorySource(), "Cijk_Alik_Bljk_BBS_BH_MT128x128x64")[0]
    assert "vendor" in str(propose_offline(dossier, CATEGORIES))


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        (("_rotary_embedding_kernel",), {"RoPE"}),
        (("fused_add_rmsnorm_quant",), {"RMSNorm"}),
        (("grouped_topk_kernel",), {"TopK"}),
        (("cross_device_reduce_2stage",), {"Comm"}),
        (("moe_gemm1",), {"MoEGEMM"}),
        (("kernel_1",), set()),
        (("qk_rope_and_store_kv_cache",), {"RoPE", "KVCacheWrite", '"store"', '"kv"', '"cache"'}),
        (("_quantize_k_cache",), {"Quant", "KVCacheWrite", '"cache"'}),
        (("_rotate_half_kernel",), {"RoPE"}),
        (("hadamard_rotate_rows",), set()),
    ],
)
def test_words_point_to_categories_and_mixed_words_to_several(
    texts: tuple[str, ...], told: set[str]
) -> None:
    assert told_by(texts) == told


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("load_mla_pages_kernel", "load"),
        ("concat_mla_query_kernel", "concat"),
        ("bmm_chunk_bwd_kernel", "chunk"),
        ("grouped_gemm_starts_kernel", "starts"),
        ("attn_mask_to_rows_kernel", "mask"),
        ("rope_norm_fused_kernel", "norm"),
        ("gemm_finalize_rows_kernel", "finalize"),
        ("quant_sort_rows_kernel", "sort"),
        ("split_attn_merge_kernel", "merge"),
    ],
)
def test_a_word_for_something_else_leaves_a_name_undecided(name: str, word: str) -> None:
    told = told_by([name])
    assert f'"{word}"' in told
    assert len(told) == 2


@pytest.mark.parametrize(
    ("path", "launcher", "category"),
    [
        ("layers/rms_norm.py", "RmsNorm.forward", "RMSNorm"),
        ("layers/rms_norm.py", "Block.forward", "only its file says RMSNorm"),
        ("layers/attention.py", "RmsNorm.forward", "only its file says Attention"),
        (
            "layers/rows.py",
            "RmsNorm.forward",
            "neither its name nor its file says what it computes",
        ),
    ],
)
def test_a_file_decides_only_together_with_what_launches(
    path: str, launcher: str, category: str
) -> None:
    first, second = candidate().evidence
    made = (replace(first, path=path), replace(second, path=path, symbol=launcher))
    dossier = replace(dossiers(MemorySource())[0], candidates=(candidate(evidence=made),))
    answer = propose_offline(dossier, CATEGORIES)
    assert (answer if isinstance(answer, str) else answer[0].category) == category


def test_a_file_that_says_more_than_the_name_leaves_it_undecided() -> None:
    first, second = candidate().evidence
    made = (replace(first, path="layers/ssd_bmm.py"), second)
    one = candidate(name="_rows_bmm_kernel", evidence=made)
    answer = propose_offline(replace(dossiers(MemorySource())[0], candidates=(one,)), CATEGORIES)
    assert answer == "its words point several ways: GEMM, LinearAttn"


@pytest.mark.parametrize(
    ("origin", "name", "names", "matches", "misses"),
    [
        ("triton", "_row", ("_row",), "_row", "_row_2"),
        ("triton-repr", "_row", ("_row_BLOCK_M_16",), "_row_BLOCK_M_32", "_rows_BLOCK_M_32"),
        (
            "hip-global",
            "pick",
            ("void a::pick<float>(int)",),
            "void a::pick<int>()",
            "a::picks<int>()",
        ),
        ("aiter-asm", "mla_a8", ("aiter::mla_a8",), "aiter::mla_a8", "aiter::mla_a8w8"),
    ],
)
def test_a_pattern_takes_the_family_and_not_its_neighbours(
    origin: str, name: str, names: tuple[str, ...], matches: str, misses: str
) -> None:
    pattern = pattern_for(Candidate(origin, name, (), 0, ""), names)  # type: ignore[arg-type]
    assert pattern is not None
    assert all(Pattern(pattern).found_in(one) for one in (*names, matches))
    assert not Pattern(pattern).found_in(misses)


def test_a_wrapper_of_another_kernel_has_no_pattern_of_its_own() -> None:
    names = ("void ck_tile::kentry<1, ck_tile::Gemm<int>>(int)",)
    assert pattern_for(Candidate("hip-global", "kentry", (), 0, ""), names) is None


def test_a_copy_that_never_converts_has_no_cast_pattern() -> None:
    assert cast_pattern(COPY.format("_nocast", "c10::BFloat16"), known_dtypes=False) is None


def test_a_cast_pattern_keeps_the_type_and_the_converting_template() -> None:
    pattern = cast_pattern(COPY.format("", "c10::BFloat16"), known_dtypes=False)
    assert pattern is not None
    assert Pattern(pattern).found_in(COPY.format("", "c10::BFloat16"))
    assert not Pattern(pattern).found_in(COPY.format("", "float"))
    assert not Pattern(pattern).found_in(COPY.format("_nocast", "c10::BFloat16"))


def test_methods_of_one_name_are_told_apart_by_their_first_line_on_the_stack() -> None:
    (dossier, *_) = dossiers(MemorySource())
    name, path = TO_FP8, "python/engine/srt/mem_cache/memory_pool.py"
    places = (("PoolOfHeads.set_kv", 704, 720), ("PoolOfLatents.set_kv", 1519, 1529))
    candidates = tuple(
        Candidate(
            "aten-cast", "",
            (Evidence("emission", "engine", "0" * 40, path, (line, line), symbol=owner),),
            70, "converts to FP8", (EnclosingFunction("engine", "0" * 40, path, owner, (first,)),),
        )
        for owner, first, line in places
    )  # fmt: skip
    member = dossier.family.members[0]
    copy = replace(member.signature, name=KernelName(name), op="aten::copy_", input_dtypes=WRITES)
    family = replace(dossier.family, members=(replace(member, signature=copy),))
    names = (replace(dossier.names[0], raw=name),)
    for first, expected in ((1519, 1529), (704, 720), (4, None)):
        frames = (FrameUse(f"/src/{path}", first, "set_kv", 0, 9),)
        made = propose_offline(
            replace(dossier, family=family, names=names, frames=frames, candidates=candidates,
                    origin="aten-cast"),
            CATEGORIES,
        )  # fmt: skip
        cited = None if isinstance(made, str) else made[0].evidence[0].lines[0]
        assert cited == expected, made


def test_a_copy_to_fp8_is_told_by_the_number_of_the_type_it_writes() -> None:
    pattern = cast_pattern(TO_FP8, known_dtypes=True)
    assert pattern is not None
    assert Pattern(pattern).found_in(TO_FP8)
    assert not Pattern(pattern).found_in(TO_FP8.replace("#3", "#5"))
