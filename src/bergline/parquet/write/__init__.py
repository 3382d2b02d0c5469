"""The one writer: Arrow rows to data files and delete files."""
