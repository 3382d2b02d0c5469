"""Reading delete files and applying them to the rows of data files."""
