"""The audit of requests that change nothing."""
