"""Grants: who may do what with a catalog that is served."""
