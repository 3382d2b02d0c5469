"""Commands that look after tables: damage, small files, old snapshots, files that nothing needs."""
