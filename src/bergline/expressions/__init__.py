"""Predicates on rows: parsed from SQL text, bound to a schema, projected to partitions, evaluated. Pure."""
