"""MERGE on lake tables: what its clauses set, target and source joined by text or by frames, and one commit."""
