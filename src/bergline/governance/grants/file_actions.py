"""What a caller may do with the files of a table; the server decides which privileges that takes."""

from enum import IntEnum


class FileActions(IntEnum):
    """What a caller may do with the files of a table; each contains those before it."""

    READ = 1
    """Read and list."""
    WRITE = 2
    """Add files under new names."""
    DELETE = 3
    """Delete and replace files, except those that only the server writes."""
    EVERYTHING = 4
    """Have the server's own keys, which open all tables."""
