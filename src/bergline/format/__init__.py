"""The Iceberg specification as pure values and functions: no files, no clock, no randomness."""
