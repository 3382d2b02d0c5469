"""Structured Streaming: lake tables as sources and as targets of streaming queries."""
