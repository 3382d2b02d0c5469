"""HTTP: requests, responses, limits and errors, without anything about tables."""
