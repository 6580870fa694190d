"""One module per command: wires edges to core."""
