"""Conformance suites and fault injection, for our own tests and for authors of stores and catalogs."""
