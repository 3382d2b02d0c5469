"""Tokens, those that were revoked, and sessions of browsers."""
