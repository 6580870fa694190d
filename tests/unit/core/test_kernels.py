from __future__ import annotations

import copy
import pickle
from dataclasses import fields

import pytest

from agent.core.kernels import FrameUse, KernelName, Signature, SignatureStats


@pytest.mark.parametrize(
    ("seen", "path", "same"),
    [
        (
            "/opt/venv/lib/python3.11/site-packages/srt/layers/mla.py",
            "python/srt/layers/mla.py",
            True,
        ),
        (r"C:\serving\srt\mla.py", "python/srt/mla.py", True),
        ("/opt/other/mla.py", "python/srt/mla.py", False),
        ("/opt/srt/mla.py", "python/srt/mha.py", False),
        ("mla.py", "python/srt/mla.py", True),
        ("/opt/srt/mla.py", "mla.py", True),
        ("/w/engine/python/engine/srt/layers/a.py", "python/engine/other/run/layers/a.py", False),
        ("/site-packages/engine/srt/layers/a.py", "python/engine/other/layers/a.py", False),
        ("/home/u/python/lib/engine/srt/layers/a.py", "python/engine/srt/layers/a.py", True),
        ("layers/a.py", "python/engine/other/layers/a.py", True),
    ],
    ids=[
        "an installed package",
        "backslashes",
        "another folder",
        "another file",
        "a bare name seen",
        "a bare path",
        "another part of the package",
        "another part of the installed package",
        "a folder of packages above",
        "too short to tell",
    ],
)
def test_a_frame_is_in_the_file_whose_path_ends_alike(seen: str, path: str, same: bool) -> None:
    assert FrameUse(seen, 1, "forward", 0, 1).is_in(path) is same


@pytest.mark.parametrize(
    "value",
    [
        Signature(KernelName("k"), "aten::copy_", ("float", "int"), replayed=True, work="memcpy"),
        SignatureStats(3, 60, 10, 30),
    ],
)
def test_what_is_sent_to_another_process_has_every_field(value: object) -> None:
    plain = (
        Signature(KernelName("")) if isinstance(value, Signature) else SignatureStats(0, 0, 0, 0)
    )
    for field in fields(plain):
        assert getattr(value, field.name) != getattr(plain, field.name)
    assert pickle.loads(pickle.dumps(value)) == value
    assert copy.deepcopy(value) == value
