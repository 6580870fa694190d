"""Checkouts in every state: each works, or fails with one clear line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent.core.proposals import Finding
from agent.errors import CheckoutNotFound, CommitMismatch, SourceError
from agent.source.checkout import blob_sha, open_checkout
from agent.source.index import GitSourceIndex, open_sources
from agent.source.paths import is_runtime, path_problem
from agent.source.snapshot import Snapshot, Store
from tests.checkouts import commit_tree, git, write_tree

KERNEL = "import triton\n\n\n@triton.jit\ndef my_kernel(x):\n    pass\n"
FILES = {"pkg/kernels.py": KERNEL, "pkg/other.py": "def f():\n    return 1\n"}


def found(index: GitSourceIndex) -> list[tuple[str, int]]:
    return [(one.path, one.lines[0]) for one in index.find_definition("my_kernel")]


def snapshot(folder: Path, commit: str = "") -> Snapshot:
    checkout = open_checkout("repo", folder, commit)
    return Snapshot(Store(checkout), commit or checkout.info.commit)


@pytest.mark.parametrize("name", ["plain", "with space", "größe-测试"])
def test_head_is_read_whatever_the_folder_is_called(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    commit = commit_tree(folder, FILES)
    index = open_sources([("repo", folder)])
    assert index.repos()[0].commit == commit
    assert found(index) == [("pkg/kernels.py", 5)]


def test_the_work_tree_is_never_read(tmp_path: Path) -> None:
    commit_tree(tmp_path, FILES)
    write_tree(tmp_path, {"pkg/kernels.py": "# gone\n", "pkg/new.py": KERNEL})
    assert found(open_sources([("repo", tmp_path)])) == [("pkg/kernels.py", 5)]


def test_an_older_commit_can_be_pinned(tmp_path: Path) -> None:
    old = commit_tree(tmp_path, FILES)
    commit_tree(tmp_path, {"pkg/kernels.py": "# gone\n"})
    assert found(open_sources([("repo", tmp_path)])) == []
    assert found(open_sources([("repo", tmp_path)], commits={"repo": old})) == [
        ("pkg/kernels.py", 5)
    ]


def test_a_bare_repository_is_read(tmp_path: Path) -> None:
    commit_tree(tmp_path / "work", FILES) if (tmp_path / "work").mkdir() is None else None
    git(tmp_path, "clone", "-q", "--bare", "work", "bare.git")
    assert found(open_sources([("repo", tmp_path / "bare.git")])) == [("pkg/kernels.py", 5)]


def test_a_worktree_is_read_at_its_own_head(tmp_path: Path) -> None:
    (tmp_path / "main").mkdir()
    old = commit_tree(tmp_path / "main", FILES)
    commit_tree(tmp_path / "main", {"pkg/kernels.py": "# gone\n"})
    git(tmp_path / "main", "worktree", "add", "-q", "--detach", "../old", old)
    assert found(open_sources([("repo", tmp_path / "old")])) == [("pkg/kernels.py", 5)]


def test_a_shallow_clone_has_its_head_and_says_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    old = commit_tree(tmp_path / "full", {"a.py": "a = 1\n"})
    commit_tree(tmp_path / "full", FILES)
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{tmp_path}/full", "shallow")
    assert found(open_sources([("repo", tmp_path / "shallow")])) == [("pkg/kernels.py", 5)]
    with pytest.raises(CommitMismatch, match="is not in the checkout"):
        open_checkout("repo", tmp_path / "shallow", old)


def test_a_partial_clone_never_fetches(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    commit_tree(tmp_path / "full", FILES)
    git(tmp_path / "full", "config", "uploadpack.allowFilter", "true")
    url = f"file://{tmp_path}/full"
    git(tmp_path, "clone", "-q", "--no-checkout", "--filter=blob:none", url, "partial")
    taken = snapshot(tmp_path / "partial").file("pkg/kernels.py")
    assert isinstance(taken, Finding)
    assert taken.code == "E_BLOB_MISSING"


def test_a_sparse_checkout_is_read_whole(tmp_path: Path) -> None:
    commit_tree(tmp_path, FILES | {"rest/z.py": "z = 1\n"})
    git(tmp_path, "sparse-checkout", "set", "rest")
    assert found(open_sources([("repo", tmp_path)])) == [("pkg/kernels.py", 5)]


def test_a_folder_of_a_repository_is_a_checkout_of_its_own(tmp_path: Path) -> None:
    commit_tree(tmp_path, {f"vendor/repo/{path}": text for path, text in FILES.items()})
    index = open_sources([("repo", tmp_path / "vendor" / "repo")])
    assert found(index) == [("pkg/kernels.py", 5)]
    with pytest.raises(SourceError):
        index.read("repo", "vendor/repo/pkg/kernels.py", 1, 1)


def test_a_repository_with_sha256_names_is_read(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--object-format=sha256")
    commit = commit_tree(tmp_path, FILES)
    assert len(commit) == 64
    assert found(open_sources([("repo", tmp_path)])) == [("pkg/kernels.py", 5)]


def test_a_folder_without_git_is_pinned_by_content(tmp_path: Path) -> None:
    write_tree(tmp_path, FILES)
    index = open_sources([("repo", tmp_path)])
    (info,) = index.repos()
    assert (info.versioned, info.commit[:7], len(info.commit)) == (False, "sha256:", 71)
    assert found(index) == [("pkg/kernels.py", 5)]
    (tmp_path / "pkg/other.py").write_text("changed = 1\n")
    assert open_sources([("repo", tmp_path)]).repos()[0].commit != info.commit


def test_an_untracked_folder_inside_a_repository_has_no_git(tmp_path: Path) -> None:
    commit_tree(tmp_path, {"a.py": "a = 1\n"})
    write_tree(tmp_path / "wheel", FILES)
    assert not open_sources([("repo", tmp_path / "wheel")]).repos()[0].versioned


def test_symlinks_of_a_folder_without_git_are_not_followed(tmp_path: Path) -> None:
    write_tree(tmp_path / "secret", {"key.py": "password = 1\n"})
    folder = write_tree(tmp_path / "repo", FILES)
    (folder / "link.py").symlink_to(tmp_path / "secret" / "key.py")
    (folder / "folder").symlink_to(tmp_path / "secret")
    shot = snapshot(folder)
    for path, code in (("link.py", "E_PATH_SYMLINK"), ("folder/key.py", "E_PATH_SYMLINK")):
        taken = shot.file(path)
        assert isinstance(taken, Finding)
        assert taken.code == code


def test_a_file_that_changed_after_the_listing_is_absent(tmp_path: Path) -> None:
    write_tree(tmp_path, FILES)
    checkout = open_checkout("repo", tmp_path)
    (tmp_path / "pkg/other.py").write_text("changed = 1\n")
    shas = [entry.sha for entry in checkout.tree(checkout.info.commit).values()]
    assert dict(checkout.blobs(shas)) == {blob_sha(KERNEL.encode()): KERNEL.encode()}


def test_a_path_through_a_tracked_symlink_or_submodule_is_refused(tmp_path: Path) -> None:
    (tmp_path / "dependency").mkdir()
    commit_tree(tmp_path / "dependency", {"a.py": "a = 1\n"})
    repo = tmp_path / "repo"
    write_tree(repo, FILES)
    (repo / "link.py").symlink_to("/etc/hostname")
    commit_tree(repo, {})
    git(
        repo, "-c", "protocol.file.allow=always", "submodule", "-q", "add",
        str(tmp_path / "dependency"), "3rdparty/dep",
    )  # fmt: skip
    commit_tree(repo, {})
    shot = snapshot(repo)
    for path, code in (
        ("link.py", "E_PATH_SYMLINK"),
        ("3rdparty/dep", "E_SUBMODULE"),
        ("3rdparty/dep/a.py", "E_SUBMODULE"),
    ):
        taken = shot.file(path)
        assert isinstance(taken, Finding)
        assert taken.code == code, path


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 9\n", "E_LFS_POINTER"),
        (b"\x00\x01binary", "E_KIND"),
        (b"x = 1\n" * 800_000, "E_TOO_LARGE"),
    ],
    ids=["an LFS pointer", "a binary", "a huge file"],
)
def test_a_file_that_is_no_source_says_why(tmp_path: Path, content: bytes, code: str) -> None:
    commit_tree(tmp_path, {"a.py": content})
    taken = snapshot(tmp_path).file("a.py")
    assert isinstance(taken, Finding)
    assert taken.code == code


@pytest.mark.parametrize(
    "content",
    [KERNEL.replace("\n", "\r\n").encode(), b"# caf\xe9 \xff\n" + KERNEL.encode()],
    ids=["CRLF", "Latin-1"],
)
def test_other_line_ends_and_encodings_keep_their_lines(tmp_path: Path, content: bytes) -> None:
    commit_tree(tmp_path, {"pkg/kernels.py": content})
    index = open_sources([("repo", tmp_path)])
    ((path, line),) = found(index)
    assert index.read("repo", path, line, line) == ("def my_kernel(x):",)


def test_a_missing_folder_and_an_empty_repository_are_clear_errors(tmp_path: Path) -> None:
    with pytest.raises(CheckoutNotFound, match="no such folder"):
        open_checkout("repo", tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(CheckoutNotFound, match="no files"):
        open_checkout("repo", tmp_path / "empty")
    git(tmp_path / "empty", "init", "-q")
    with pytest.raises(SourceError, match="no commit yet"):
        open_checkout("repo", tmp_path / "empty")


@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="only root can give files away")
def test_a_repository_of_another_owner_is_one_clear_error(tmp_path: Path) -> None:
    folder = tmp_path / "checkout"
    folder.mkdir()
    commit_tree(folder, {"a.py": "x = 1\n"})
    for one in (folder, *folder.rglob("*")):
        os.chown(one, 12345, 12345, follow_symlinks=False)
    with pytest.raises(SourceError, match="dubious ownership") as caught:
        open_checkout("repo", folder)
    assert "safe.directory" in caught.value.hint


def test_nothing_of_the_repository_configuration_is_run(tmp_path: Path) -> None:
    commit_tree(tmp_path, FILES | {".gitattributes": "*.py diff=evil filter=evil\n"})
    trap = tmp_path / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\ncat\n")
    trap.chmod(0o755)
    for key in (
        "core.fsmonitor", "core.pager", "core.sshCommand", "core.askPass", "diff.evil.textconv",
        "diff.evil.command", "filter.evil.smudge", "filter.evil.clean", "credential.helper",
        "core.editor", "gpg.program", "diff.external",
    ):  # fmt: skip
        git(tmp_path, "config", key, str(trap))
    git(tmp_path, "config", "core.hooksPath", str(tmp_path))
    (tmp_path / "sprung").unlink(missing_ok=True)
    index = open_sources([("repo", tmp_path)])
    assert found(index) == [("pkg/kernels.py", 5)]
    assert index.read("repo", "pkg/other.py", 1, 1) == ("def f():",)
    assert not (tmp_path / "sprung").exists()


def test_git_variables_of_the_caller_do_not_redirect_the_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "repo").mkdir()
    (tmp_path / "other").mkdir()
    commit_tree(tmp_path / "repo", FILES)
    commit_tree(tmp_path / "other", {"a.py": "a = 1\n"})
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other" / ".git"))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", os.devnull)
    assert found(open_sources([("repo", tmp_path / "repo")])) == [("pkg/kernels.py", 5)]


@pytest.mark.parametrize(
    "path",
    [
        "/etc/hostname", "../../etc/hostname", "a/../b.py", "./a.py", "a//b.py", "a/", "",
        "C:/a.py", "https://host/a.py", "HEAD:a.py", "a\\b.py", "a\nb.py", "a\x00.py", "~/a.py",
        ".git/config", "pkg/.GIT/hooks/x", "a\u202eb.py",
    ],
)  # fmt: skip
def test_an_unsafe_path_is_refused_before_any_lookup(path: str) -> None:
    problem = path_problem(path)
    assert problem is not None
    assert problem.code == "E_PATH_UNSAFE"


def test_a_path_counts_in_upper_and_lower_case(tmp_path: Path) -> None:
    commit_tree(tmp_path, FILES)
    taken = snapshot(tmp_path).file("PKG/kernels.py")
    assert isinstance(taken, Finding)
    assert taken.code == "E_PATH_NOT_IN_TREE"
    assert "pkg/kernels.py" in taken.message


@pytest.mark.parametrize(
    ("path", "runtime"),
    [
        ("python/sglang/srt/layers/attention/aiter_backend.py", True),
        ("sgl-kernel/csrc/gemm/quant.cu", True),
        ("csrc/kernels/attention.cu", True),
        ("python/sglang/srt/latest_thing.py", True),
        ("python/sglang/srt/contest.py", True),
        ("sgl-kernel/tests/test_moe_align.py", False),
        ("op_tests/triton_tests/utils/mla_decode_ref.py", False),
        ("benchmark/kernels/bench.py", False),
        ("python/sglang/bench_serving.py", False),
        ("test/srt/models.py", False),
        ("examples/runtime/engine.py", False),
        ("docs/conf.py", False),
        ("pkg/test_kernel.cu", False),
        ("pkg/kernel_test.py", False),
        ("README.md", False),
        ("csrc/ck_gemm/gen_instances.py", False),
        ("csrc/ck_gemm/gen_instances_cktile.py", False),
        ("csrc/ck_gemm/gemm_tune.py", False),
        ("hsa/codegen.py", False),
        ("aiter/tuned_gemm.py", True),
        ("python/engine/cli/generate.py", True),
    ],
)
def test_tests_benchmarks_generators_and_docs_are_not_runtime(path: str, runtime: bool) -> None:
    assert is_runtime(path) is runtime
