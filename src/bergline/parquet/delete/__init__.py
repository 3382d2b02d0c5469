"""Delete files read, and applied to the rows of data files."""
