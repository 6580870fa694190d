"""Bytes -> Trace: readers of every format, and linking kernels to launches and ops."""
