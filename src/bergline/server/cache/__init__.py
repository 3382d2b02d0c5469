"""Responses cached as bytes."""
