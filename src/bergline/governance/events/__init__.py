"""Events: what happened in a catalog, in an order that a cursor can follow."""
