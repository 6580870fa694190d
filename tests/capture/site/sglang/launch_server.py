"""A stand-in for `python -m sglang.launch_server`; it takes the options that SGLang declares."""

import os
import sys
from pathlib import Path

from tests.capture.declared import fields_of, parser_of
from tests.capture.server import Serving, serve

declared = Path(os.environ["STAND_IN_SOURCES"])
options = parser_of(declared / "srt/server_args.py").parse_args(sys.argv[1:])
fields = fields_of(declared / "srt/managers/io_struct.py", "ProfileReqInput")
assert options.model_path
serve(
    Serving(
        options.tensor_parallel_size or 1,
        "fp8" in (options.kv_cache_dtype or ""),
        not options.disable_cuda_graph,
        frozenset(fields),
    )
)
