"""Catalogs: the pointer to each table's current metadata, the stores that swap it, and the REST client."""
