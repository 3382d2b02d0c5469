"""The Iceberg REST protocol: what its server and its client have in common, and the client."""
