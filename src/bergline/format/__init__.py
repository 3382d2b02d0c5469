"""The Iceberg specification as values and functions: no files, no clock, no randomness."""
