"""The REST catalog: the Iceberg REST protocol over a lake, for every engine. It holds no table logic."""
