"""Webhooks: where a server sends events, and what became of that."""
