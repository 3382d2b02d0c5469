"""Access: privileges on catalogs, namespaces, tables and views, and who holds them."""
