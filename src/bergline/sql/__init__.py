"""Iceberg's own statements and procedures, and the tables in other SQL; independent of any engine."""
