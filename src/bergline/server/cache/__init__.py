"""Responses kept as bytes."""
