"""The writer: Arrow rows to data files and delete files."""
