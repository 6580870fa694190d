"""A stand-in for `python -m sglang.bench_serving`; it takes the options that SGLang declares.

What it asks of `/start_profile` and where the capture lands is as in SGLang's module of that name.
"""

import os
import sys
import time
from pathlib import Path

import requests

from tests.capture.declared import parser_of

declared = Path(os.environ["STAND_IN_SOURCES"])
options = parser_of(declared / "bench_serving.py").parse_args(sys.argv[1:])
url = f"http://127.0.0.1:{os.environ['STAND_IN_PORT']}"
assert options.backend == "sglang"
if options.profile:
    under = options.profile_output_dir or os.environ.get("SGLANG_TORCH_PROFILER_DIR", "/tmp")
    body = {"output_dir": f"{under}/{time.time()}", "num_steps": options.profile_num_steps}
    requests.post(f"{url}/start_profile", json=body).raise_for_status()
for number in range(options.num_prompts):
    requests.post(f"{url}/generate", json={"text": str(number)}).raise_for_status()
if options.profile and options.profile_num_steps is None:
    requests.post(f"{url}/stop_profile").raise_for_status()
