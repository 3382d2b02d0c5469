"""File storage on local disk, in memory and on object stores; the only package that opens files."""
