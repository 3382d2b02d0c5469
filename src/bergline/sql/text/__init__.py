"""SQL text as tokens, names and literals."""
