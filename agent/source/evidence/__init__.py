"""Check a proposal's evidence: each item, what the items prove together, and pins."""
