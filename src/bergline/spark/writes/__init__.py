"""A DataFrame as data files and one commit."""
