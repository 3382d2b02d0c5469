"""A scan plan as a DataFrame, by one of two readers."""
