"""Pointers in SQLite and PostgreSQL, in the layout shared with Java and PyIceberg."""
