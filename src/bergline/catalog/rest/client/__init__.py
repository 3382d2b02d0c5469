"""The REST catalog: a client of an Iceberg REST server."""
