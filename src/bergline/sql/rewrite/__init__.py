"""Query text edited in place for the engine that runs it."""
