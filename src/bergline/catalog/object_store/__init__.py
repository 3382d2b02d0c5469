"""Pointers as objects in an object store, changed only by conditional requests."""
