"""Schemas, name mappings and physical schemas."""
