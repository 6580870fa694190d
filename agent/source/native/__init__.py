"""What HIP and CUDA trees hold: kernels, launches, build manifests, assembly tables, ELF."""
