"""A checkout, read-only: git objects, tree-sitter, tables and code objects."""
