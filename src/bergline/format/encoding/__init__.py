"""Encodings used by the specification: integers, ISO dates, JSON and Avro."""
