"""One module per way of asking for the next action."""
