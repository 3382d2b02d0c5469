"""Credentials for tables' files, handed out to clients."""
