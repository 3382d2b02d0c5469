"""Statements carried out on lakes."""
