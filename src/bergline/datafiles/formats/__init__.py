"""Data and delete files of every format that Iceberg allows, behind one interface: batches and a physical schema."""
