"""Pull requests: their model, the records of them, how they are asked for, and how they are published."""
