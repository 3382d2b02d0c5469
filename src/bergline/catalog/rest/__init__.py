"""The Iceberg REST protocol, shared by server and client, and the client."""
