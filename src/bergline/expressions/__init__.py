"""Predicates on rows: parsed from SQL text, bound to a schema, evaluated on file metrics. Pure."""
