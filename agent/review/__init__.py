"""The gate, the draft of the rule file, the journal and the commit."""
