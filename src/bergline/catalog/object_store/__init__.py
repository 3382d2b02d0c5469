"""Pointers as objects of a store, changed only by conditional requests."""
