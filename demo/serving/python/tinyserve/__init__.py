"""A small serving stack to point label-agent at."""
