"""SQL text and its tokens."""
