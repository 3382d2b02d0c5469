"""Conformance suites and fault injection, for our own tests and for those who write stores."""
