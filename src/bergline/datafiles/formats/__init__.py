"""Data and delete files of every format that Iceberg allows, opened as one thing: batches and their physical schema."""
