"""Partition specs and sort orders, with the transforms that both are made of."""
