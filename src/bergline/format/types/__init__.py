"""The types of columns, their single values and their defaults."""
