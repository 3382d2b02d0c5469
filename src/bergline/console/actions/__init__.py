"""What may be done in the console: each is reviewed first, then done as reviewed or refused."""
