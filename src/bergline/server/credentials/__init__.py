"""Credentials for the files of tables, vended to clients."""
