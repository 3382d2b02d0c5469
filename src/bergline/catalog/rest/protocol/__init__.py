"""The Iceberg REST protocol: endpoints, bodies, errors and names, for server and client."""
