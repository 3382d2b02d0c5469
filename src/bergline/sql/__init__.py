"""Iceberg's own statements and procedures, and finding tables in other SQL. Knows no engine."""
