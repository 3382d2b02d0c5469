"""`Pipeline`: write to a branch, audit, publish."""
