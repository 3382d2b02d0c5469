"""Pointers in AWS Glue."""
