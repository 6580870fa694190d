"""Does a place in the source contradict what is known of the run?

Reads file names, guard chains (module-level flags are resolved one assignment at a time) and the
guards of every caller in the same file. What is not known of the run contradicts nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

from tree_sitter import Node

from agent.core.proposals import Finding, RunContext
from agent.source.parse import TreeCache, captures, text_of
from agent.source.python.guards import all_guards, atoms
from agent.source.python.inductor import compiled_where
from agent.source.python.sites import Site, sites_named
from agent.source.snapshot import SourceFile

# The words of a flag, file or folder that tie it to one vendor.
_VENDOR_WORDS = {
    "cuda": frozenset({"cuda", "nvidia", "flashinfer", "cutlass", "trtllm", "cudnn", "cublas",
                       "nvfp4", "tensorrt", "deepgemm", "deep_gemm", "fa3", "flashmla"}),
    "rocm": frozenset({"hip", "rocm", "amd", "aiter", "quark", "mi300", "mi350"}),
    "cpu": frozenset({"cpu", "amx", "intel_amx"}),
    "xpu": frozenset({"xpu", "intel"}),
    "npu": frozenset({"npu", "ascend"}),
    "musa": frozenset({"musa"}),
    "hpu": frozenset({"hpu", "gaudi"}),
    "tpu": frozenset({"tpu"}),
    "mps": frozenset({"mps", "metal", "mlx"}),
}  # fmt: skip
_SHARED_FOLDERS = frozenset({"cuda", "cpu", "hip", "intel", "metal"})
"""Words that stand in paths of code every vendor runs (`cuda_graph_runner.py`)."""
_ATTENTION_WORDS = frozenset(
    {"aiter", "flashinfer", "triton", "fa3", "fa4", "flashattention", "flashmla", "cutlass_mla",
     "trtllm", "wave", "xpu", "torch_native", "intel_amx", "ascend", "flex", "dual_chunk"}
)  # fmt: skip
_ARCH = re.compile(r"gfx(\d+[a-f]?)|(?:^|[^a-z])sm_?(\d{2,3})|mi(\d{3})x?", re.IGNORECASE)
_MI = {"300": "gfx942", "308": "gfx942", "325": "gfx942", "350": "gfx950", "355": "gfx950"}
_FLAG = re.compile(r"(?<![.\w])_?[a-zA-Z]\w*")
_CHECK_ALIKE = re.compile(r"cuda_alike|cuda_or_hip|hip_or_cuda", re.IGNORECASE)
_MLA_FLAGS = re.compile(r"(?:^|[._])(?:use_mla|is_mla|use_mla_backend)\b")
_FAMILIES = frozenset({"MLA", "MHA", "GQA", "MQA"})
_MHA_POOL = re.compile(r"MHA\w*Pool|Pool\w*MHA")
_MLA_CLASS = re.compile(r"MLA(?![a-z])")
_PLAIN_TEST = re.compile(r"(?:[\w.]*\.)?_?is_(?:cuda|hip|rocm|npu|xpu|cpu|musa|hpu)(?:\(\))?")
_NO_GPU = frozenset({"cpu", "npu", "xpu", "hpu", "tpu", "mps"})
_OTHER_DEVICE = re.compile(
    r"^_?(?:forward|apply|run|call|impl)_(?:\w+_)?(npu|xpu|hpu|tpu|mps|cpu|amx)$|_(?:npu|xpu|hpu|tpu)$"
)
_ON_DEVICE = re.compile(
    r"(?:.*\. )?is_(cpu|npu|xpu|hpu|mps|meta)(?: \( \))?"
    r"|(?:[\w .()]*\b(?:device|type|platform|device_type)(?: \))? ==|case)"
    r" [\"'](cpu|npu|xpu|hpu|mps|tpu|meta)[\"']"
)
_BUILT_FOR = re.compile(r"(?:bool\()?torch\.version\.(hip|cuda)\)?(isNone|isnotNone)?")
_ATTENTION = re.compile(r"(?:\w+\.)*attention_backend(==|!=)[\"'](\w+)[\"']")
_DEBUG = re.compile(r"(?<![A-Za-z])debug(?:ging)?(?![A-Za-z])", re.IGNORECASE)
_DENIES = re.compile(r"!=|\bnot in\b")
_MAX_HOPS = 3


class Contradictions:
    """Checks places of one checkout against one run."""

    def __init__(self, trees: TreeCache, context: RunContext) -> None:
        self._trees = trees
        self._backend, self._attention = run_backend(context)
        self._arch = context.arch.lower()
        self._model = context.model.upper()

    def of_path(self, path: str, repo: str = "") -> Finding | None:
        """Say that a file belongs to another vendor or another attention backend."""
        words = _path_words(f"{repo}/{path}" if repo else path)
        for vendor, tied in _VENDOR_WORDS.items():
            if vendor in ("cuda", "rocm") and vendor == (self._backend or vendor):
                continue
            found = sorted((tied & words) - _SHARED_FOLDERS)
            if found:
                message = f"{path} belongs to {found[0]}"
                run = f"the run is on {self._backend}" if self._backend else "the kernel is a GPU's"
                return Finding("E_BACKEND_MISMATCH", f"{message}; {run}", location=path)
        other = self._other_attention(path)
        return other or self._other_arch(path, path)

    def of_site(self, file: SourceFile, site: Site) -> tuple[Finding, ...]:
        """Say what in a site's guards, or in those of all its callers, contradicts the run."""
        found = tuple(self._of_class(file, site))
        found = found or tuple(self._of_function(file, site))
        guards = (*all_guards(site.chain), *compiled_where(site))
        found = found or tuple(self._of_guards(file, guards, site.line))
        return found or tuple(self._of_callers(file, site, 0, frozenset()))

    def of_definition(self, file: SourceFile, chain: Sequence[Node], line: int) -> Finding | None:
        """Say what around a definition contradicts the run: `if is_cuda():` above a kernel."""
        return next(self._of_guards(file, all_guards(chain), line), None)

    def of_debugging(self, file: SourceFile, site: Site) -> Finding | None:
        """Warn that a site runs only where somebody debugs: by a switch, or by its function."""
        said = next((one for one in site.qualname.split(".") if _DEBUG.search(one)), "")
        for guard in all_guards(site.chain):
            asked = (atom for atom in self._resolved(file, guard) if atom.startswith("+"))
            if any(_DEBUG.search(one) and not _DENIES.search(one) for one in asked):
                said = guard[1:]
        if not said:
            return None
        message = f"it runs only while debugging ({said[:80]!r}), which few runs do"
        hint = "say by the trace that this run did, or cite where it runs without"
        return Finding("E_DEBUG_ONLY", message, "warning", f"{file.path}:{site.line}", hint)

    def _of_class(self, file: SourceFile, site: Site) -> Iterator[Finding]:
        """Say that a class is made for the other attention family (`MHATokenToKVPool`)."""
        if self._model not in _FAMILIES:
            return
        owner = site.qualname.partition(".")[0]
        wrong = _MHA_POOL.search(owner) if self._model == "MLA" else _MLA_CLASS.search(owner)
        if wrong:
            message = f"{owner} is for other models than the {self._model} family of the run"
            yield Finding("E_MODEL_GUARD", message, location=f"{file.path}:{site.line}")

    def _of_function(self, file: SourceFile, site: Site) -> Iterator[Finding]:
        """Say that a function is made for hardware that is no GPU (`forward_npu`)."""
        found = _OTHER_DEVICE.search(site.qualname.rpartition(".")[2])
        if found is not None:
            device = found.group().rpartition("_")[2]
            message = f"{site.qualname} is for the {device}; the kernel is a GPU's"
            where = f"{file.path}:{site.line}"
            yield Finding("E_BACKEND_MISMATCH", message, location=where)

    def _of_callers(
        self, file: SourceFile, site: Site, hops: int, seen: frozenset[str]
    ) -> Iterator[Finding]:
        """Yield a contradiction that every call of the enclosing function in this file shares."""
        name = site.qualname.rpartition(".")[2]
        if not name or name in seen or hops >= _MAX_HOPS:
            return
        callers = [one for one in sites_named(file, self._trees, name) if one.qualname]
        if not callers:
            return
        shared: list[Finding] = []
        for caller in callers:
            found = list(self._of_guards(file, all_guards(caller.chain), caller.line))
            found = found or list(self._of_callers(file, caller, hops + 1, seen | {name}))
            if not found:
                return
            shared.extend(found)
        yield shared[0]

    def _of_guards(self, file: SourceFile, guards: Sequence[str], line: int) -> Iterator[Finding]:
        where = f"{file.path}:{line}"
        for guard in guards:
            for atom in self._resolved(file, guard):
                yield from self._of_atom(atom, guard, where)

    def _resolved(self, file: SourceFile, guard: str) -> Iterator[str]:
        """Yield a guard and, where it is a module-level flag, what the flag stands for."""
        yield guard
        pending, seen = [guard], {guard}
        for _ in range(16):
            if not pending:
                return
            atom = pending.pop()
            name = atom[1:].strip()
            value = self._flags(file).get(name)
            if value is None:
                continue
            found = atoms(value)
            if atom[0] == "-" and len(found) > 1:
                continue
            for one in found:
                signed = one if atom[0] == "+" else ("-" if one[0] == "+" else "+") + one[1:]
                if signed not in seen:
                    seen.add(signed)
                    pending.append(signed)
                    yield signed

    def _flags(self, file: SourceFile) -> dict[str, str]:
        return self._trees.remembered(file, "flags", _module_flags) or {}

    def _of_atom(self, atom: str, guard: str, where: str) -> Iterator[Finding]:
        positive, text = atom[0] == "+", atom[1:]
        if _CHECK_ALIKE.search(text) or len(text) > 300:
            return
        vendor = _vendor_of(text, positive=positive)
        shown = f"the guard {guard[1:]!r} ({'holds' if positive else 'does not hold'} here)"
        device = _device_of(text) if positive else ""
        if device or (positive and vendor in _NO_GPU):
            message = f"{shown} needs a {device or vendor}; the kernel is a GPU's"
            yield Finding("E_BACKEND_MISMATCH", message, location=where)
        elif vendor and self._backend and (vendor == self._backend) != positive:
            needed = vendor if positive else "another backend"
            message = f"{shown} needs {needed}; the run is on {self._backend}"
            yield Finding("E_BACKEND_MISMATCH", message, location=where)
        if positive and self._arch:
            wrong = self._other_arch(text, where)
            if wrong is not None:
                yield Finding("E_ARCH_GUARD", f"{shown}: {wrong.message}", location=where)
        if not positive and self._excludes(text):
            message = f"{shown} excludes {self._arch}"
            yield Finding("E_ARCH_GUARD", message, location=where)
        yield from self._of_torch(atom, shown, where)
        yield from self._of_attention(atom, shown, where)
        mla = self._model and _MLA_FLAGS.search(text) and "==" not in text
        if mla and positive != (self._model == "MLA"):
            message = f"{shown} contradicts a run of the {self._model} model family"
            yield Finding("E_MODEL_GUARD", message, location=where)

    def _of_attention(self, atom: str, shown: str, where: str) -> Iterator[Finding]:
        """Say that a condition asks for another attention backend, or for none but the run's."""
        asked = _ATTENTION.fullmatch("".join(atom[1:].split()))
        if asked is None or not self._attention:
            return
        wanted = (asked.group(1) == "==") == atom.startswith("+")
        if wanted != (asked.group(2) == self._attention):
            needed = asked.group(2) if wanted else f"another than {asked.group(2)}"
            message = f"{shown} asks for {needed}; the run used {self._attention}"
            yield Finding("E_BACKEND_MISMATCH", message, location=where)

    def _of_torch(self, atom: str, shown: str, where: str) -> Iterator[Finding]:
        """Say what PyTorch's own tests of the build and of a GPU contradict."""
        text, holds = "".join(atom[1:].split()), atom[0] == "+"
        if text == "torch.cuda.is_available()" and not holds:
            message = f"{shown}: without a GPU no kernel runs"
            yield Finding("E_BACKEND_MISMATCH", message, location=where)
        found = _BUILT_FOR.fullmatch(text)
        if found is None or not self._backend:
            return
        vendor = {"hip": "rocm", "cuda": "cuda"}[found.group(1)]
        there = holds != (found.group(2) == "isNone")
        if there != (vendor == self._backend):
            message = f"{shown}: PyTorch for {self._backend} is otherwise"
            yield Finding("E_BACKEND_MISMATCH", message, location=where)

    def _excludes(self, text: str) -> bool:
        """Tell whether a plain flag names the run's architecture."""
        stated = _arch_of(text)
        plain = re.fullmatch(r"[\w.]+(?:\(\))?", text) is not None
        return bool(self._arch and stated and plain and not _differs(stated, self._arch))

    def _other_attention(self, path: str) -> Finding | None:
        if not self._attention or "/attention/" not in path:
            return None
        name = path.rpartition("/")[2].removesuffix(".py")
        mine = self._attention.replace("-", "_")
        if not name.endswith("_backend") or mine in name:
            return None
        found = next((word for word in sorted(_ATTENTION_WORDS) if word in name), "")
        if not found:
            return None
        message = f"{path} is the {found} backend; the run used {self._attention}"
        return Finding("E_BACKEND_MISMATCH", message, location=path)

    def _other_arch(self, text: str, where: str) -> Finding | None:
        stated = _arch_of(text)
        if not stated or not self._arch or not _differs(stated, self._arch):
            return None
        message = f"{stated} is required; the run is on {self._arch}"
        return Finding("E_ARCH_GUARD", message, location=where)


def run_backend(context: RunContext) -> tuple[str, str]:
    """Give (cuda or rocm or "", attention backend or "") of a run; `rocm/aiter` names both."""
    backend, _, attention = context.backend.lower().partition("/")
    if not backend and context.arch.lower().startswith("gfx"):
        backend = "rocm"
    if not backend and context.arch.lower().startswith("sm"):
        backend = "cuda"
    backend = {"hip": "rocm", "amd": "rocm", "nvidia": "cuda"}.get(backend, backend)
    return backend, (context.attention.lower() or attention)


def _differs(stated: str, run: str) -> bool:
    """Tell whether two architectures differ; `gfx95` stands for `gfx950`."""
    return not (run.startswith(stated) or stated.startswith(run))


def _arch_of(text: str) -> str:
    found = _ARCH.search(text)
    if found is None:
        return ""
    if found.group(1):
        return f"gfx{found.group(1).lower()}"
    if found.group(2):
        return f"sm{found.group(2)}"
    return _MI.get(found.group(3), "")


def _device_of(text: str) -> str:
    """Give the hardware besides GPUs that a condition asks for: `x.is_cpu`, `device == "npu"`."""
    found = _ON_DEVICE.fullmatch(text.strip())
    return (found.group(1) or found.group(2)) if found is not None else ""


def _vendor_of(text: str, *, positive: bool) -> str:
    """Give the vendor a condition asks for: `_is_cuda`, `is_hip()`, `_use_aiter`.

    Where it does not hold, only a plain test of the vendor says something about it.
    """
    if not positive and not _PLAIN_TEST.fullmatch(text.strip()):
        return ""
    found = re.fullmatch(r"(?:[\w.]*\.)?_?(?:is|use)_(\w+?)(?:\(\))?", text.strip())
    if found is None:
        return ""
    words = frozenset(found.group(1).lower().split("_"))
    if "cuda" in words:
        return "cuda"
    if words & {"hip", "rocm", "aiter"}:
        return "rocm"
    first = found.group(1).lower()
    return first if first in ("cpu", "npu", "xpu", "musa", "hpu", "mps", "tpu") else ""


@lru_cache(maxsize=8_192)
def _path_words(path: str) -> frozenset[str]:
    stem = path.removeprefix("python/").rpartition(".")[0].lower()
    parts = re.split(r"[/_.-]", stem)
    pairs = (f"{first}_{second}" for first, second in pairwise(parts))
    return frozenset((*parts, *pairs))


def _module_flags(root: Node) -> dict[str, str]:
    """Map module-level names of a file to the text assigned to them."""
    query = "(module (expression_statement (assignment left: (identifier) right: (_)) @a))"
    found = {}
    for node in captures("python", query, root).get("a", []):
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left is not None and right is not None:
            found[text_of(left)] = text_of(right)
    return found
