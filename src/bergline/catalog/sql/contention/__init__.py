"""How writers of one table get along, in a catalog's database."""
