"""Which filters and columns a query asks of a table."""
