"""Expiry: which snapshots and files may be removed, and removing them."""
