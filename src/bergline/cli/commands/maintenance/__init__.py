"""Commands that maintain tables: damage, small files, old snapshots, files that nothing needs."""
