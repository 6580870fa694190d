"""Text <-> RuleSet, and RuleSet x Trace -> labels."""
