"""Commands about tables and their rows."""
