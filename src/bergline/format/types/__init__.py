"""Column types, single-value encoding and defaults."""
