"""Table metadata: snapshots, refs, updates and requirements, and their JSON."""
