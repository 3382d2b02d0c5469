"""Requests and responses of the server, before any of it is about tables."""
