"""Results -> text, Markdown, CSV, JSON, HTML."""
