"""Builds the native modules for ROCm."""

from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension

sources = [
    "csrc/moe/topk_gate.cu",
    "csrc/mla/asm_mla.cu",
]

setup(
    name="tinyserve-kernels",
    ext_modules=[CUDAExtension(name="tinyserve.kernels", sources=sources)],
    cmdclass={"build_ext": BuildExtension},
)
