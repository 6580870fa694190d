"""The agent loop: families, dossiers, prompts, providers."""
