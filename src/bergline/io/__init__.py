"""Bytes in and out; the only package that opens files."""
