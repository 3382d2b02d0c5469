"""Statements that an engine runs: queries, INSERT, and statements around a query."""
