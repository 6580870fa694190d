"""Values and invariants of label-agent; no I/O."""
