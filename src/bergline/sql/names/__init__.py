"""From names in SQL to tables of a lake."""
