"""The catalog that asks an Iceberg REST server."""
