"""What commands print: rows, plans, graphs and errors."""
