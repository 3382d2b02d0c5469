"""Row predicates: parsed from SQL text, bound to a schema, projected to partitions, and evaluated."""
