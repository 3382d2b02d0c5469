"""A table's metadata rewritten for another place, to which its files are to be copied."""
