"""Launches that never run while a server works, or are of something else than they seem."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import dedent

import pytest

from agent.core.proposals import Evidence, RunContext
from agent.source.index import GitSourceIndex, open_sources
from tests.checkouts import commit_tree, line_of

LAUNCH = "scale_kernel[(1,)](x)"
HEAD = "import torch\nfrom typing import TYPE_CHECKING\nfrom server.kernels import scale_kernel\n"
KERNELS = dedent("""\
    import triton


    @triton.jit
    def scale_kernel(x):
        pass


    @triton.jit
    def other_kernel(x):
        pass


    def use(x):
        scale_kernel[(1,)](x)
        other_kernel[(1,)](x)
    """)
NEVER = {
    "if False": "def run(x):\n    if False:\n        LAUNCH\n",
    "if 0": "def run(x):\n    if 0:\n        LAUNCH\n",
    "if not True": "def run(x):\n    if not True:\n        LAUNCH\n",
    "else of True": "def run(x):\n    if True:\n        return x\n    else:\n        LAUNCH\n",
    "while False": "def run(x):\n    while False:\n        LAUNCH\n",
    "False and": "def run(x):\n    y = False and LAUNCH\n",
    "while types are checked": "def run(x):\n    if TYPE_CHECKING:\n        LAUNCH\n",
    "behind a return": "def run(x):\n    return x\n    LAUNCH\n",
    "behind a raise": "def run(x):\n    if x:\n        raise ValueError\n        LAUNCH\n",
    "for a missing module": (
        "def run(x):\n    try:\n        import fast\n    except ImportError:\n        LAUNCH\n"
    ),
    "a function for a missing module": (
        "try:\n    from fast import run\nexcept (OSError, ImportError):\n"
        "    def run(x):\n        LAUNCH\n"
    ),
    "as a script": (
        'def run(x):\n    pass\n\n\nif __name__ == "__main__":\n    def go(x):\n        LAUNCH\n    go(1)\n'
    ),
    "a test": "import unittest\n\n\n@unittest.skip('no')\ndef run(x):\n    LAUNCH\n",
    "a fixture": "import pytest\n\n\n@pytest.fixture\ndef run(x):\n    LAUNCH\n",
    "a local function nobody calls": "def run(x):\n    def local(x):\n        LAUNCH\n    return x\n",
    "a lambda nobody calls": "def run(x):\n    later = lambda: LAUNCH\n    return x\n",
    "a lambda given to nobody": "def run(x):\n    (lambda: LAUNCH)\n    return x\n",
    "a generator nobody asks": "def run(x):\n    (LAUNCH for _ in x)\n",
    "a loop over nothing": "def run(x):\n    for _ in []:\n        LAUNCH\n",
    "a loop of no rounds": "def run(x):\n    for _ in range(0):\n        LAUNCH\n",
    "behind an end of the process": "import sys\n\n\ndef run(x):\n    sys.exit(1)\n    LAUNCH\n",
    "behind an endless loop": "def run(x):\n    while True:\n        pass\n    LAUNCH\n",
    "behind two returns": (
        "def run(x):\n    if x:\n        return 1\n    else:\n        return 2\n    LAUNCH\n"
    ),
    "behind a return within": "def run(x):\n    with x as y:\n        return y\n    LAUNCH\n",
    "behind a try that returns": (
        "def run(x):\n    try:\n        return x\n    except ValueError:\n        raise\n    LAUNCH\n"
    ),
    "behind a finally that returns": (
        "def run(x):\n    try:\n        x()\n    finally:\n        return x\n    LAUNCH\n"
    ),
    "on another system": "import sys\n\n\ndef run(x):\n    if sys.platform == 'win32':\n        LAUNCH\n",
    "a function defined again": "def run(x):\n    LAUNCH\n\n\ndef run(x):\n    return x\n",
    "a method defined again": (
        "class A:\n    def go(self, x):\n        LAUNCH\n\n    def go(self, x):\n        return x\n\n\n"
        "def run(x):\n    A().go(x)\n"
    ),
    "a switch nothing sets": "USE = False\n\n\ndef run(x):\n    if USE:\n        LAUNCH\n",
    "warm-up": "def warmup_scale(x):\n    LAUNCH\n\n\ndef run(x):\n    warmup_scale(x)\n",
    "tuning": "def autotune_scale(x):\n    LAUNCH\n\n\ndef run(x):\n    autotune_scale(x)\n",
    "measured": "def run(x):\n    triton.testing.do_bench(lambda: LAUNCH)\n",
    "asks": "def can_use_scale(x):\n    LAUNCH\n\n\ndef run(x):\n    can_use_scale(x)\n",
    "replaced by every class": (
        "class Plain:\n    def scale_it(self, x):\n        LAUNCH\n\n\nclass Real(Plain):\n"
        "    def scale_it(self, x):\n        return x\n\n\ndef run(x):\n    Real().scale_it(x)\n"
    ),
}  # fmt: skip
NO_GPU = {
    "forward_npu": "class A:\n    def forward_npu(self, x):\n        LAUNCH\n\n\ndef run(x):\n    A()\n",
    "forward_cpu": "class A:\n    def forward_cpu(self, x):\n        LAUNCH\n\n\ndef run(x):\n    A()\n",
    "a flag": "_is_npu = is_npu()\n\n\ndef run(x):\n    if _is_npu:\n        LAUNCH\n",
    "a tensor": "def run(x):\n    if x.is_cpu:\n        LAUNCH\n",
    "a device": 'def run(x):\n    if x.device.type == "cpu":\n        LAUNCH\n',
    "a module": "if is_xpu():\n    def run(x):\n        LAUNCH\n",
    "no GPU": "def run(x):\n    if not torch.cuda.is_available():\n        LAUNCH\n",
    "a case": "def run(x):\n    match x.device.type:\n        case 'cpu':\n            LAUNCH\n",
}
OTHER = {
    "a parameter of that name": "def run(x, scale_kernel):\n    LAUNCH\n",
    "a function of that name": "def scale_kernel(x):\n    return {}\n\n\ndef run(x):\n    LAUNCH\n",
    "a name for another kernel": (
        "from server.kernels import other_kernel as scale_kernel\n\n\ndef run(x):\n    LAUNCH\n"
    ),
    "rebound to another kernel": (
        "from server.kernels import other_kernel\n\nscale_kernel = other_kernel\n\n\ndef run(x):\n    LAUNCH\n"
    ),
    "rebound to something made": "scale_kernel = make()\n\n\ndef run(x):\n    LAUNCH\n",
    "rebound where it runs": (
        "from server.kernels import other_kernel\n\n\ndef run(x):\n    global scale_kernel\n"
        "    scale_kernel = other_kernel\n    LAUNCH\n"
    ),
    "an attribute rebound": (
        "from server import kernels\n\nkernels.scale_kernel = make()\n\n\ndef run(x):\n    kernels.LAUNCH\n"
    ),
}
RUNS = {
    "a lambda that is called": "def run(x):\n    later = lambda: LAUNCH\n    later()\n",
    "a lambda that is given on": "def run(x):\n    once(lambda: LAUNCH)\n",
    "wrapped under its own name": (
        "scale_kernel = tuned(scale_kernel)\n\n\ndef run(x):\n    LAUNCH\n"
    ),
    "rebound where it is missing": (
        "if scale_kernel is None:\n    scale_kernel = make()\n\n\ndef run(x):\n    LAUNCH\n"
    ),
    "none before it is imported": (
        "scale_kernel = None\ntry:\n    from server.kernels import scale_kernel\n"
        "except ImportError:\n    pass\n\n\ndef run(x):\n    LAUNCH\n"
    ),
    "an attribute wrapped": (
        "from server import kernels\n\nkernels.scale_kernel = tuned(kernels.scale_kernel)\n\n\n"
        "def run(x):\n    kernels.LAUNCH\n"
    ),
    "behind a switch that is set": (
        "USE = False\n\n\ndef use():\n    global USE\n    USE = True\n\n\ndef run(x):\n    if USE:\n        LAUNCH\n"
    ),
    "behind a switch of another module": (
        "OTHER_SETS = False\n\n\ndef run(x):\n    if OTHER_SETS:\n        LAUNCH\n"
    ),
    "a switch that is on": "USE = True\n\n\ndef run(x):\n    if USE:\n        LAUNCH\n",
    "behind a try that may go on": (
        "def run(x):\n    try:\n        return x\n    except ValueError:\n        pass\n    LAUNCH\n"
    ),
    "behind a try that tries": "def run(x):\n    try:\n        x()\n    finally:\n        x()\n    LAUNCH\n",
    "behind a loop that ends": "def run(x):\n    while True:\n        if x:\n            break\n    LAUNCH\n",
    "behind a return of some": "def run(x):\n    if x:\n        return 1\n    elif x is None:\n        return 2\n    LAUNCH\n",
    "a setter beside its property": (
        "class A:\n    @property\n    def go(self):\n        LAUNCH\n\n    @go.setter\n    def go(self, x):\n"
        "        return x\n\n\ndef run(x):\n    A().go\n"
    ),
    "defined either way": (
        "if is_it():\n    def run(x):\n        LAUNCH\nelse:\n    def run(x):\n        return x\n"
    ),
    "a generator that is asked": "def run(x):\n    list(LAUNCH for _ in x)\n",
    "plainly": "def run(x):\n    LAUNCH\n",
    "behind a check": "def run(x):\n    if x is None:\n        raise ValueError\n    LAUNCH\n",
    "a local function": "def run(x):\n    def local(x):\n        LAUNCH\n    local(x)\n",
    "on some devices": 'def run(x):\n    if x.device.type == "cuda" or x.device.type == "npu":\n        LAUNCH\n',
    "not on a CPU": "def run(x):\n    if not x.is_cpu:\n        LAUNCH\n",
    "to a CPU": "def copy_to_cpu(x):\n    LAUNCH\n\n\ndef run(x):\n    copy_to_cpu(x)\n",
    "tuned": "@autotune(configs=[])\ndef run(x):\n    LAUNCH\n",
    "replaced by one class of two": (
        "class Base:\n    def scale_it(self, x):\n        LAUNCH\n\n\nclass Real(Base):\n"
        "    def scale_it(self, x):\n        return x\n\n\nclass Same(Base):\n    pass\n\n\n"
        "def run(x):\n    Real().scale_it(x)\n    Same().scale_it(x)\n"
    ),
    "called by what replaces it": (
        "class Base:\n    def scale_it(self, x):\n        LAUNCH\n\n\nclass Real(Base):\n"
        "    def scale_it(self, x):\n        super().scale_it(x)\n\n\ndef run(x):\n    Real().scale_it(x)\n"
    ),
}  # fmt: skip
DEBUGGING = {
    "a switch of the environment": (
        'import os\n\n\ndef run(x):\n    if os.environ.get("SERVER_DEBUG_SCALE"):\n        LAUNCH\n'
    ),
    "a flag of the module": (
        'CHECKED = get_bool_env_var("SERVER_DEBUG")\n\n\ndef run(x):\n    if CHECKED:\n        LAUNCH\n'
    ),
    "a field": "class A:\n    def run(self, x):\n        if self.debug_mode:\n            LAUNCH\n\n\ndef run(x):\n    A()\n",
    "a function": "def debug_scale(x):\n    LAUNCH\n\n\ndef run(x):\n    debug_scale(x)\n",
}  # fmt: skip
NOT_DEBUGGING = {
    "no switch": "def run(x):\n    if not DEBUG:\n        LAUNCH\n",
    "another mode": 'def run(x):\n    if x.mode != "debug":\n        LAUNCH\n',
    "a longer word": "def run(x):\n    if x.debugger_free:\n        LAUNCH\n",
}
FOR_OTHERS = {
    "of CUDA": "def run(x):\n    if torch.version.hip is None:\n        LAUNCH\n",
    "of no ROCm": "def run(x):\n    if torch.version.hip:\n        return x\n    LAUNCH\n",
    "another attention": 'def run(x):\n    if x.attention_backend == "triton":\n        LAUNCH\n',
    "not this attention": 'def run(x):\n    if x.args.attention_backend != "aiter":\n        LAUNCH\n',
}
FOR_THIS = {
    "of ROCm": "def run(x):\n    if torch.version.hip is not None:\n        LAUNCH\n",
    "of no CUDA": "def run(x):\n    if torch.version.cuda is None:\n        LAUNCH\n",
    "this attention": 'def run(x):\n    if x.attention_backend == "aiter":\n        LAUNCH\n',
    "not another attention": 'def run(x):\n    if x.attention_backend != "triton":\n        LAUNCH\n',
}
CASES = {**FOR_OTHERS, **FOR_THIS, **NEVER, **NO_GPU, **OTHER, **RUNS, **DEBUGGING, **NOT_DEBUGGING}


def _path(name: str) -> str:
    return f"server/case_{list(CASES).index(name)}.py"


def _text(name: str) -> str:
    body = CASES[name].replace("LAUNCH", LAUNCH)
    own = " as scale_kernel" in body or "kernels.scale_kernel" in body
    return f"{'' if own else HEAD}\n\n{body}"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitSourceIndex]:
    folder = tmp_path_factory.mktemp("live") / "server"
    folder.mkdir()
    uses = "import server.ops\n\nserver.ops.OTHER_SETS = True\n" + "".join(
        f"from server.case_{number} import run as run_{number}\n\nrun_{number}(1)\n"
        for number in range(len(CASES))
    )
    files = {_path(name): _text(name) for name in CASES}
    more = {"server/__init__.py": "", "server/kernels.py": KERNELS, "server/main.py": uses}
    commit_tree(folder, {**files, **more})
    index = open_sources([("server", folder)])
    yield index
    index.close()


def codes(index: GitSourceIndex, name: str, run: RunContext | None = None) -> set[str]:
    """Examine the launch of a case as an emission of `scale_kernel`."""
    (repo,) = index.repos()
    line = line_of(_text(name), LAUNCH)
    found = index.examine(
        (
            Evidence("definition", "server", repo.commit, "server/kernels.py", (5, 5)),
            Evidence("emission", "server", repo.commit, _path(name), (line, line)),
        ),
        names=("scale_kernel",), category="Elementwise", context=run or RunContext(),
    )  # fmt: skip
    return {one.code for one in found.findings}


@pytest.mark.parametrize("name", NEVER)
def test_a_launch_that_never_runs_is_no_evidence(server: GitSourceIndex, name: str) -> None:
    assert codes(server, name) == {"E_UNREACHABLE"}


@pytest.mark.parametrize("name", NO_GPU)
def test_a_launch_for_other_hardware_is_no_evidence(server: GitSourceIndex, name: str) -> None:
    assert codes(server, name) == {"E_BACKEND_MISMATCH"}


ON_AITER = RunContext("rocm", "gfx942", "aiter")


@pytest.mark.parametrize("name", FOR_OTHERS)
def test_a_launch_for_another_run_is_no_evidence(server: GitSourceIndex, name: str) -> None:
    assert codes(server, name, ON_AITER) == {"E_BACKEND_MISMATCH"}
    assert codes(server, name) == set()


@pytest.mark.parametrize("name", FOR_THIS)
def test_a_launch_for_this_run_is_evidence(server: GitSourceIndex, name: str) -> None:
    assert codes(server, name, ON_AITER) == set()


@pytest.mark.parametrize("name", OTHER)
def test_a_launch_of_what_only_has_the_name_is_no_evidence(
    server: GitSourceIndex, name: str
) -> None:
    assert codes(server, name) == {"E_NO_MATCHING_NODE", "E_MISSING_EVIDENCE"}


@pytest.mark.parametrize("name", DEBUGGING)
def test_a_launch_while_debugging_is_evidence_with_a_warning(
    server: GitSourceIndex, name: str
) -> None:
    assert codes(server, name) == {"E_DEBUG_ONLY"}


@pytest.mark.parametrize("name", {**RUNS, **NOT_DEBUGGING})
def test_a_launch_that_may_run_is_evidence(server: GitSourceIndex, name: str) -> None:
    assert codes(server, name) == set()
