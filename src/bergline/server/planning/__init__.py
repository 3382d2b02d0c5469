"""Scans planned for clients, in the protocol's words."""
